import { useMemo } from "preact/hooks";
import { formatBytes, formatCount, formatCounted, formatExact } from "../../base/units";
import { formatPercent } from "../../layout/call_graph";
import type { Sorting } from "../../layout/url_values";
import type { CallGraph } from "../../payload/generated/answers";
import { nodeName } from "../../payload/responses/names";
import { store } from "../state/view_state";
import { type Column, column, savedColumn } from "../tables/columns";
import { Table } from "../tables/table";
import { ButtonGroup } from "../widgets/choice";
import type { GraphProps } from "./picture";

interface NeighborsProps extends Pick<GraphProps, "graph" | "change" | "onPick"> {
  node: number;
  /** True if the graph cannot be filtered by regular expressions, as in a report. */
  fixed: boolean;
}

/** Selected function: figures, callers, callees, and buttons that filter the graph by it. */
export function Neighbors({ graph, node, change, fixed, onPick }: NeighborsProps) {
  const { nodes, calls, total } = graph;
  const name = nodeName(nodes, node);
  const pattern = `^${escapePattern(nodes.function[node] || nodes.file[node])}$`;
  const around = (from: readonly number[], to: readonly number[]): [number, number][] =>
    from
      .flatMap((end, call): [number, number][] => (end === node ? [[to[call], calls.bytes[call]]] : []))
      .sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  const list = (heading: string, found: [number, number][]) => (
    <>
      <h3>{heading}</h3>
      {found.length === 0 && <p class="muted">None in the picture.</p>}
      <ul>
        {found.map(([other, bytes]) => (
          <li key={other}>
            <button class="link" onClick={() => onPick(other)}>
              {nodeName(nodes, other)}
            </button>
            <span title={formatExact(bytes)}>{formatBytes(bytes)}</span>
          </li>
        ))}
      </ul>
    </>
  );
  return (
    <aside class="neighbors" data-testid="function-details" aria-label={`The function ${name}`}>
      <header>
        <h2>{name}</h2>
        <button class="quiet" aria-label="Close" onClick={() => onPick(-1)}>
          ×
        </button>
      </header>
      <dl>
        <dt>{change ? "Own change" : "Own bytes"}</dt>
        <dd title={formatExact(nodes.flat[node])}>
          {formatBytes(nodes.flat[node])} ({formatPercent(nodes.flat[node], total)})
        </dd>
        <dt>With what it calls</dt>
        <dd title={formatExact(nodes.cum[node])}>
          {formatBytes(nodes.cum[node])} ({formatPercent(nodes.cum[node], total)})
        </dd>
        <dt>Allocations</dt>
        <dd>{formatCount(nodes.cum_allocations[node])}</dd>
      </dl>
      {nodes.function[node] !== "" && !fixed && (
        <ButtonGroup label="Filter the graph">
          <button onClick={() => store.set({ focus: pattern })}>Focus</button>
          <button onClick={() => store.set({ ignore: pattern, selected_function: "" })}>Ignore</button>
          <button onClick={() => store.set({ hide: pattern, selected_function: "" })}>Hide</button>
        </ButtonGroup>
      )}
      {list("Called by", around(calls.callee, calls.caller))}
      {list("Calls", around(calls.caller, calls.callee))}
    </aside>
  );
}

/** Return a regular expression that matches only this name. */
function escapePattern(name: string): string {
  return name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/** Columns of functions by their numbers, sorted by absolute size, since a comparison also has negative ones. */
function functionColumns({ nodes, total }: CallGraph): Column<number>[] {
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

type TopProps = Pick<GraphProps, "graph" | "picked" | "onPick" | "fileName">;

/** Table of all functions, like pprof's top, including those that the picture omits. */
export function TopTable({ graph, picked, onPick, fileName }: TopProps) {
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
