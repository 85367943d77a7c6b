import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import { formatBytes, formatCount } from "../../base/units";
import { toCsv } from "../../layout/csv";
import { liveBytes, sharersAt } from "../../layout/live_set";
import { filterRows } from "../../layout/table_filter";
import { tableLines } from "../../layout/table_lines";
import type { Sort } from "../../layout/table_order";
import { sortRows } from "../../layout/table_order";
import { ROLES } from "../../payload/recording";
import type { ViewState } from "../state";
import type { Shown } from "./shown";
import { bufferColumns } from "./table_columns";
import { TableToolbar } from "./table_toolbar";
import { TableHead } from "./table_head";
import { VirtualLines } from "./virtual_lines";
import { TableLine } from "./table_line";

interface Props {
  shown: Shown;
  live: Uint32Array;
  position: number;
  length: number;
  fileName: string;
  store: Store<ViewState>;
  dark: boolean;
}

/** The buffers live at the inspected position, as text: to sort, filter, group, copy and save. */
export function BufferTable(props: Props): JSX.Element {
  const { shown, live, position, length, fileName, store, dark } = props;
  const { rows } = shown;
  const search = useStore(store, (state) => state.search);
  const selected = shown.indexOf(useStore(store, (state) => state.selected));
  const hovered = shown.indexOf(useStore(store, (state) => state.hovered));
  const [size, setSize] = useState("");
  const [sort, setSort] = useState<Sort>({ key: "size", descending: true });
  const [grouped, setGrouped] = useState(false);
  const [sharers, setSharers] = useState(false);
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());

  const wanted = useMemo(
    () => (sharers ? Uint32Array.from([...live, ...sharersAt(rows, position)]) : live),
    [rows, live, position, sharers],
  );
  const filtered = useMemo(() => filterRows(rows, wanted, search, size), [rows, wanted, search, size]);
  const sorted = useMemo(() => sortRows(rows, filtered.rows, sort), [rows, filtered, sort]);
  const lines = useMemo(
    () => tableLines(rows, sorted, { grouped, closed: toggled, opened: toggled }),
    [rows, sorted, grouped, toggled],
  );
  const columns = useMemo(() => bufferColumns(length), [length]);
  const template = columns.map((column) => column.track).join(" ");

  const toggle = (key: string): void => {
    const next = new Set(toggled);
    if (!next.delete(key)) next.add(key);
    setToggled(next);
  };
  const select = (row: number): void => {
    const number = shown.numberOf(row);
    store.set({ selected: number === store.get().selected ? null : number });
  };
  const selectNext = (by: number): void => {
    const order = lines.flatMap((line) => (line.kind === "row" ? [line.row] : []));
    if (order.length === 0) return;
    const next = Math.min(Math.max(order.indexOf(selected) + by, 0), order.length - 1);
    store.set({ selected: shown.numberOf(order[next]) });
  };
  const selectedLine = lines.findIndex((line) => line.kind === "row" && line.row === selected);

  return (
    <section
      class="buffer-table"
      data-testid="buffer-table"
      aria-label="Buffers live at the inspected position"
    >
      <TableToolbar
        search={search}
        onSearch={(text) => store.set({ search: text, match: null })}
        size={size}
        onSize={setSize}
        grouped={grouped}
        onGrouped={setGrouped}
        sharers={sharers}
        onSharers={setSharers}
        errors={filtered.errors}
        summary={`${formatCount(sorted.length)} of ${formatCount(wanted.length)} buffers, ${formatBytes(liveBytes(rows, sorted))}`}
        csv={() => toCsv(rows, sorted)}
        fileName={fileName}
      />
      <VirtualLines
        count={lines.length}
        reveal={selectedLine}
        empty={wanted.length === 0 ? "Nothing is live at this position." : "No buffer matches the filter."}
        label="Buffers"
        onStep={selectNext}
        head={<TableHead columns={columns} template={template} sort={sort} onSort={setSort} />}
        line={(i) => {
          const line = lines[i];
          if (line.kind === "row")
            return (
              <TableLine
                rows={rows}
                row={line.row}
                columns={columns}
                template={template}
                dark={dark}
                selected={line.row === selected}
                hovered={line.row === hovered}
                onSelect={() => select(line.row)}
                onHover={(over) => store.set({ hovered: over ? shown.numberOf(line.row) : null })}
              />
            );
          const what = line.kind === "group" ? ROLES[line.role] : "smaller than 16 KiB";
          return (
            <button
              class={`fold fold-${line.kind}`}
              aria-expanded={line.open}
              onClick={() => toggle(line.key)}
            >
              <span aria-hidden="true">{line.open ? "▾" : "▸"}</span> {what}
              <span class="muted">
                {formatCount(line.count)} buffers, {formatBytes(line.bytes)}
              </span>
            </button>
          );
        }}
      />
    </section>
  );
}
