import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Store } from "../../base/store";
import { formatBytes, formatCount, formatExact } from "../../base/units";
import { formatPercent } from "../../layout/call_graph/call_graph";
import type { TopKey, TopSort } from "../../layout/call_graph/top_table";
import { filterTop, sortTop, topCsv, topTexts } from "../../layout/call_graph/top_table";
import type { CallGraph } from "../../payload/generated/answers";
import { nodeName } from "../../payload/responses/call_graph";
import type { Column } from "../tables/data_table";
import { Cell, DataTable, stepLine, TableRow, useTable } from "../tables/data_table";
import type { ViewState } from "../state/view_state";
import { useSearch } from "../data/use_search";

const COLUMNS: readonly Column<TopKey>[] = [
  {
    key: "flat",
    heading: "Flat",
    about: "Bytes that the function itself allocated",
    numeric: true,
    track: "150px",
  },
  {
    key: "cum",
    heading: "Cumulative",
    about: "Bytes including callees; recursion counts once",
    numeric: true,
    track: "150px",
  },
  {
    key: "flat_allocations",
    heading: "Allocations",
    about: "Allocations by the function itself",
    numeric: true,
    track: "96px",
  },
  {
    key: "cum_allocations",
    heading: "With callees",
    about: "Allocations including callees",
    numeric: true,
    track: "100px",
  },
  {
    key: "name",
    heading: "Function",
    about: "Function, file and line",
    numeric: false,
    track: "minmax(180px, 1fr)",
  },
];

const LARGEST_FIRST: TopSort = { key: "cum", descending: true };

interface Props {
  graph: CallGraph;
  picked: number;
  onPick: (node: number) => void;
  fileName: string;
  store: Store<ViewState>;
}

/** Table of all functions, like pprof's top, including those that the picture omits. */
export function TopTable({ graph, picked, onPick, fileName, store }: Props): JSX.Element {
  const table = useTable(store, COLUMNS, LARGEST_FIRST);
  const { size, sort, template } = table;
  const search = useSearch(table.search, graph, topTexts);
  const filtered = useMemo(() => filterTop(graph, search, size), [graph, search, size]);
  const lines = useMemo(() => sortTop(graph.nodes, filtered.lines, sort), [graph, filtered, sort]);
  const at = lines.indexOf(picked);
  return (
    <div class="top-table" data-testid="top-table">
      <DataTable
        {...{ store, table, fileName, at }}
        errors={filtered.errors}
        summary={`${formatCount(lines.length)} of ${formatCount(graph.nodes_total)} functions`}
        csv={() => topCsv(graph, lines)}
        count={lines.length}
        empty="No function matches the filter."
        label="Functions"
        onStep={(by) => onPick(lines[stepLine(at, by, lines.length)] ?? -1)}
        line={(i, id) => (
          <Line
            {...{ id, template, graph }}
            node={lines[i]}
            selected={i === at}
            onPick={() => onPick(lines[i])}
          />
        )}
      />
    </div>
  );
}

interface LineProps {
  id: string;
  template: string;
  graph: CallGraph;
  node: number;
  selected: boolean;
  onPick: () => void;
}

function Line({ graph: { nodes, total }, node, ...line }: LineProps): JSX.Element {
  const bytes = (size: number): JSX.Element => (
    <Cell numeric title={formatExact(size)}>
      {formatBytes(size)} <small class="muted">{formatPercent(size, total)}</small>
    </Cell>
  );
  return (
    <TableRow {...line} testid="top-row">
      {bytes(nodes.flat[node])}
      {bytes(nodes.cum[node])}
      <Cell numeric>{formatCount(nodes.flat_allocations[node])}</Cell>
      <Cell numeric>{formatCount(nodes.cum_allocations[node])}</Cell>
      <Cell title={nodeName(nodes, node)}>{nodeName(nodes, node)}</Cell>
    </TableRow>
  );
}
