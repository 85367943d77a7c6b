import { useMemo } from "preact/hooks";
import { formatBytes, formatCount, formatCounted, formatExact } from "../../base/units";
import { formatPercent } from "../../layout/call_graph";
import type { Sorting } from "../../layout/url_values";
import type { CallGraph } from "../../payload/generated/answers";
import { nodeName } from "../../payload/responses/names";
import { type Column, column, savedColumn } from "../tables/columns";
import { Table } from "../tables/table";

/** Columns of functions by their numbers, sorted by absolute size, since a comparison also has negative ones. */
export function functionColumns({ nodes, total }: CallGraph): Column<number>[] {
  const size = (values: readonly number[]) => (node: number) => Math.abs(values[node]);
  const bytes = (key: "flat" | "cum", heading: string, about: string): Column<number> =>
    column("bytes", key, heading, about, (node) => nodes[key][node], {
      csv: `${key}_bytes`,
      track: "150px",
      order: size(nodes[key]),
      ties: size(key === "flat" ? nodes.cum : nodes.flat),
      cell: (node) => (
        <span title={formatExact(nodes[key][node])}>
          {formatBytes(nodes[key][node])}{" "}
          <small class="muted">{formatPercent(nodes[key][node], total)}</small>
        </span>
      ),
    });
  const count = (
    key: "flat_allocations" | "cum_allocations",
    heading: string,
    about: string,
  ): Column<number> =>
    column("count", key, heading, about, (node) => nodes[key][node], {
      track: "100px",
      order: size(nodes[key]),
      ties: size(nodes.flat),
    });
  return [
    bytes("flat", "Flat", "Bytes that the function itself allocated"),
    bytes("cum", "Cumulative", "Bytes including callees; recursion counts once"),
    count("flat_allocations", "Allocations", "Allocations by the function itself"),
    count("cum_allocations", "With callees", "Allocations including callees"),
    column("text", "name", "Function", "Function, file and line", (node) => nodeName(nodes, node), {
      csv: "",
      track: "minmax(180px, 1fr)",
    }),
    savedColumn("function", (node) => nodes.function[node]),
    savedColumn("file", (node) => nodes.file[node]),
    savedColumn("line", (node) => (nodes.line[node] > 0 ? nodes.line[node] : null)),
  ];
}

const LARGEST_FIRST: Sorting = { key: "cum", descending: true };

interface Props {
  graph: CallGraph;
  picked: number;
  onPick: (node: number) => void;
  fileName: string;
}

/** Table of all functions, like pprof's top, including those that the picture omits. */
export function TopTable({ graph, picked, onPick, fileName }: Props) {
  const columns = useMemo(() => functionColumns(graph), [graph]);
  const rows = useMemo(() => [...graph.nodes.flat.keys()], [graph]);
  return (
    <div class="top-table" data-testid="top-table">
      <Table
        {...{ columns, rows, fileName }}
        bytes={(node) => Math.abs(graph.nodes.cum[node])}
        texts={(node) => [nodeName(graph.nodes, node)]}
        first={LARGEST_FIRST}
        label="Functions"
        testid="top-row"
        noun="function"
        summary={(shown) => `${formatCount(shown)} of ${formatCounted(graph.nodes_total, "function")}`}
        isSelected={(node) => node === picked}
        onSelect={onPick}
        open={onPick}
      />
    </div>
  );
}
