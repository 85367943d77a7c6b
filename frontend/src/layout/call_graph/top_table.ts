import { compileSearch } from "../../base/search";
import type { CallGraph, CallNodes } from "../../payload/responses/call_graph";
import { nodeName } from "../../payload/responses/call_graph";
import { formatCsv } from "../../base/csv";
import { parseSizeFilter } from "../table/table_filter";

export type TopKey = "flat" | "cum" | "flat_allocations" | "cum_allocations" | "name";

export interface TopSort {
  key: TopKey;
  descending: boolean;
}

/** Functions whose name or file has the searched text and whose cumulative size is as asked for. */
export function filterTop(
  { nodes }: CallGraph,
  search: string,
  size: string,
): { lines: number[]; errors: string[] } {
  const errors: string[] = [];
  const sizeTest = parseSizeFilter(size);
  if (sizeTest === null) errors.push(`“${size.trim()}” is no size; write >1MiB, <=512 KiB or 1MiB..2GiB.`);
  const found = compileSearch(search);
  if (found.error !== null) errors.push(`Looked for as plain text, since ${found.error.toLowerCase()}.`);
  const lines = nodes.flat.flatMap((_, node) =>
    (sizeTest === null || sizeTest(Math.abs(nodes.cum[node]))) && found.matches(nodeName(nodes, node))
      ? [node]
      : [],
  );
  return { lines, errors };
}

/** By size whichever its sign; equal ones by the other measure. */
export function sortTop(nodes: CallNodes, lines: readonly number[], { key, descending }: TopSort): number[] {
  const way = descending ? -1 : 1;
  const other = key === "flat" ? nodes.cum : nodes.flat;
  return lines.slice().sort((a, b) => {
    if (key === "name")
      return way * nodeName(nodes, a).localeCompare(nodeName(nodes, b), "en", { numeric: true });
    const column = nodes[key];
    return (
      way * (Math.abs(column[a]) - Math.abs(column[b])) || Math.abs(other[b]) - Math.abs(other[a]) || a - b
    );
  });
}

export function topCsv({ nodes }: CallGraph, lines: readonly number[]): string {
  const headings = [
    "flat_bytes",
    "cum_bytes",
    "flat_allocations",
    "cum_allocations",
    "function",
    "file",
    "line",
  ];
  return formatCsv(
    headings,
    lines.map((node) => [
      nodes.flat[node],
      nodes.cum[node],
      nodes.flat_allocations[node],
      nodes.cum_allocations[node],
      nodes.function[node],
      nodes.file[node],
      nodes.line[node] > 0 ? nodes.line[node] : "",
    ]),
  );
}
