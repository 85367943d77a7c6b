/** What one box of a call graph is: pprof's granularities. */
export const GRANULARITIES = ["function", "filefunction", "file", "line"] as const;

export type Granularity = (typeof GRANULARITIES)[number];

/** What a call graph is asked for. */
export interface CallGraphQuery {
  id: string;
  by: Granularity;
  /** Regular expressions on functions and files; empty is none. */
  focus: string;
  ignore: string;
  hide: string;
  /** Without the frames of frameworks. */
  fold: boolean;
  /** All devices of the file. */
  whole: boolean;
  /** Another profile, which this one is shown as a change of; empty is none. */
  base: string;
}

/** Functions as columns, those with the most below them first. Of a change, figures may be negative. */
export interface CallNodes {
  function: string[];
  file: string[];
  /** 0 where lines do not tell functions apart. */
  line: number[];
  flat: number[];
  cum: number[];
  flat_allocations: number[];
  cum_allocations: number[];
  /** In the picture. */
  drawn: boolean[];
}

export interface CallGraph {
  by: Granularity;
  /** What shares are of: everything, or of a change, what there was before. */
  total: number;
  total_allocations: number;
  /** Bytes that focus and ignore leave, and those of them that have no frame left. */
  shown: number;
  unplaced: number;
  nodes: CallNodes;
  nodes_total: number;
  not_drawn: { nodes: number; largest: number };
  not_listed: { nodes: number; largest: number };
  /** Between functions in the picture; `residual`: at times through others. */
  calls: { caller: number[]; callee: number[]; bytes: number[]; allocations: number[]; residual: boolean[] };
}

/** `func2`, `func2 train.py:12`: what a node is called, as pprof writes it. */
export function nodeName(nodes: CallNodes, node: number): string {
  const { function: name, file, line } = nodes;
  const place = line[node] > 0 ? `${file[node]}:${line[node]}` : file[node];
  return [name[node], place].filter((part) => part !== "").join(" ") || "unnamed";
}
