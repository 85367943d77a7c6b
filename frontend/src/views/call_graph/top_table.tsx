import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import { formatBytes, formatCount, formatExact } from "../../base/units";
import { percent } from "../../layout/call_graph";
import type { TopKey, TopSort } from "../../layout/top_lines";
import { filterTop, sortTop, topCsv } from "../../layout/top_lines";
import type { CallGraph } from "../../payload/device_profile";
import { nodeName } from "../../payload/device_profile";
import { TableHead } from "../recording/table_head";
import { TableToolbar } from "../recording/table_toolbar";
import { useSorting } from "../recording/use_sorting";
import { VirtualLines } from "../recording/virtual_lines";
import type { ViewState } from "../state";

const COLUMNS: readonly { key: TopKey; heading: string; about: string; numeric: boolean; track: string }[] = [
  { key: "flat", heading: "Flat", about: "Bytes that it allocated itself", numeric: true, track: "150px" },
  {
    key: "cum",
    heading: "Cumulative",
    about: "With what it calls; a recursion counts once",
    numeric: true,
    track: "150px",
  },
  {
    key: "flat_allocations",
    heading: "Allocations",
    about: "That it made itself",
    numeric: true,
    track: "96px",
  },
  {
    key: "cum_allocations",
    heading: "With callees",
    about: "Allocations, with those of what it calls",
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
const TEMPLATE = COLUMNS.map(({ track }) => track).join(" ");

const MOST_FIRST: TopSort = { key: "cum", descending: true };

interface Props {
  graph: CallGraph;
  picked: number;
  onPick: (node: number) => void;
  fileName: string;
  store: Store<ViewState>;
}

/** Every function, those outside of the picture too: pprof's top. */
export function TopTable({ graph, picked, onPick, fileName, store }: Props): JSX.Element {
  const search = useStore(store, (state) => state.search);
  const size = useStore(store, (state) => state.size);
  const [sort, setSort] = useSorting(store, COLUMNS, MOST_FIRST);
  const filtered = useMemo(() => filterTop(graph, search, size), [graph, search, size]);
  const lines = useMemo(() => sortTop(graph.nodes, filtered.lines, sort), [graph, filtered, sort]);
  const at = lines.indexOf(picked);
  return (
    <div class="top-table" data-testid="top-table">
      <TableToolbar
        search={search}
        onSearch={(text) => store.set({ search: text, match: null })}
        size={size}
        onSize={(text) => store.set({ size: text })}
        options={<></>}
        errors={filtered.errors}
        summary={`${formatCount(lines.length)} of ${formatCount(graph.nodes_total)} functions`}
        csv={() => topCsv(graph, lines)}
        fileName={fileName}
      />
      <VirtualLines
        count={lines.length}
        reveal={at}
        empty="No function matches the filter."
        label="Functions"
        onStep={(by) => onPick(lines[Math.min(Math.max(at + by, 0), lines.length - 1)] ?? -1)}
        head={<TableHead columns={COLUMNS} template={TEMPLATE} sort={sort} onSort={setSort} />}
        line={(i) => <Line graph={graph} node={lines[i]} selected={lines[i] === picked} onPick={onPick} />}
      />
    </div>
  );
}

interface LineProps {
  graph: CallGraph;
  node: number;
  selected: boolean;
  onPick: (node: number) => void;
}

function Line({ graph: { nodes, total }, node, selected, onPick }: LineProps): JSX.Element {
  const bytes = (size: number): JSX.Element => (
    <span role="gridcell" class="numeric" title={formatExact(size)}>
      {formatBytes(size)} <small class="muted">{percent(size, total)}</small>
    </span>
  );
  return (
    <div
      role="row"
      data-testid="top-row"
      class={selected ? "table-line selected" : "table-line"}
      aria-selected={selected}
      style={{ gridTemplateColumns: TEMPLATE }}
      onClick={() => onPick(node)}
    >
      {bytes(nodes.flat[node])}
      {bytes(nodes.cum[node])}
      <span role="gridcell" class="numeric">
        {formatCount(nodes.flat_allocations[node])}
      </span>
      <span role="gridcell" class="numeric">
        {formatCount(nodes.cum_allocations[node])}
      </span>
      <span role="gridcell" title={nodeName(nodes, node)}>
        {nodeName(nodes, node)}
      </span>
    </div>
  );
}
