import type { CallNodes } from "../generated/answers";

/** Return a node's name in pprof's format: `func2`, `func2 train.py:12`. */
export function nodeName(nodes: CallNodes, node: number): string {
  const { function: name, file, line } = nodes;
  const place = line[node] > 0 ? `${file[node]}:${line[node]}` : file[node];
  return [name[node], place].filter((part) => part !== "").join(" ") || "unnamed";
}
