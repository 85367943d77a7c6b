/** pprof's granularities: what one box of a call graph stands for. */
export const GRANULARITIES = ["function", "filefunction", "file", "line"] as const;

export type Granularity = (typeof GRANULARITIES)[number];

/** Parameters of a call graph. */
export interface CallGraphQuery {
  id: string;
  by: Granularity;
  /** Regular expressions that match functions and files; empty means none. */
  focus: string;
  ignore: string;
  hide: string;
  /** Hide frames of frameworks. */
  fold: boolean;
  /** Include all devices of the file. */
  whole: boolean;
  /** Profile to compare with; empty means none. */
  base: string;
}

/** Functions as columns, largest cumulative bytes first. Figures of a comparison may be negative. */
export interface CallNodes {
  function: string[];
  file: string[];
  /** 0 if lines do not distinguish functions. */
  line: number[];
  flat: number[];
  cum: number[];
  flat_allocations: number[];
  cum_allocations: number[];
  /** Whether the graph shows the function. */
  drawn: boolean[];
}

export interface CallGraph {
  by: Granularity;
  /** Denominator of shares: all bytes or, in a comparison, the bytes of the base profile. */
  total: number;
  total_allocations: number;
  /** Bytes after `focus` and `ignore`, and how many of them have no visible frame. */
  shown: number;
  unplaced: number;
  nodes: CallNodes;
  nodes_total: number;
  not_drawn: { nodes: number; largest: number };
  not_listed: { nodes: number; largest: number };
  /** Calls between visible functions. `residual`: some of the calls pass through hidden functions. */
  calls: { caller: number[]; callee: number[]; bytes: number[]; allocations: number[]; residual: boolean[] };
}

/** Return a node's name in pprof's format: `func2`, `func2 train.py:12`. */
export function nodeName(nodes: CallNodes, node: number): string {
  const { function: name, file, line } = nodes;
  const place = line[node] > 0 ? `${file[node]}:${line[node]}` : file[node];
  return [name[node], place].filter((part) => part !== "").join(" ") || "unnamed";
}
