import type { CallGraph, CallNodes } from "../../payload/generated/answers";
import { nodeName } from "../../payload/responses/call_graph";
import { formatCsv } from "../../base/csv";
import type { Search } from "../../base/search";
import { parseFilters } from "../table/table_filter";

export type TopKey = "flat" | "cum" | "flat_allocations" | "cum_allocations" | "name";

export interface TopSort {
  key: TopKey;
  descending: boolean;
}

/**
 * Return functions whose name or file matches the search and whose cumulative size matches the size filter.
 */
export function filterTop(
  { nodes }: CallGraph,
  search: Search,
  size: string,
): { lines: number[]; errors: string[] } {
  const { text, matchesSize, errors } = parseFilters(search, size);
  const lines = nodes.flat.flatMap((_, node) =>
    matchesSize(Math.abs(nodes.cum[node])) && text.matches(nodeName(nodes, node)) ? [node] : [],
  );
  return { lines, errors };
}

/** Return the texts that a search looks at. */
export function topTexts({ nodes }: CallGraph): string[] {
  return nodes.flat.map((_, node) => nodeName(nodes, node));
}

/** Sort by absolute size; ties are resolved by the other measure. */
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
