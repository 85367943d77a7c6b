import { useContext, useMemo } from "preact/hooks";
import type { Search } from "../../base/search";
import { formatBytes, formatCount, formatCounted } from "../../base/units";
import { rowsCsv, sortRows } from "../../layout/table/fields";
import { filterRows, rowTexts } from "../../layout/table/table_filter";
import { commonFolder, firstGroup, groupKeys, tableLines } from "../../layout/table/table_lines";
import { rowsBelowMatches, treeTexts } from "../../layout/tree/tree";
import { readExpanded, type Sorting, toggleExpanded } from "../../layout/url_values";
import { liveBytes, sharersAt } from "../../layout/usage/live_set";
import { PrintingContext } from "../browser/printing";
import { capitalize, useTerms } from "../data/terms";
import type { AvailableRows } from "../data/use_recording";
import { useSearch } from "../data/use_search";
import { LiveHeading, type LiveProps, useLiveRows } from "../page/live_rows";
import { store, useViewState } from "../state/view_state";
import { DataTable, stepLine, TableRow, useTable } from "../tables/data_table";
import { useTree } from "../trees/tree_charts";
import { Toggle } from "../widgets/choice";
import { allocationColumns, bufferColumns } from "./columns";
import { GroupChoice, GroupLine, MissingNote, UnexplainedLine } from "./groups";

/** Name of a saved file's last line: bytes that no row explains, so that the sum equals the allocator's own figure. */
const UNEXPLAINED = "stack, or unexplained by any allocation";

const LARGEST_FIRST: Sorting = { key: "size", descending: true };

interface Props {
  available: AvailableRows;
  live: Uint32Array;
  /** Live bytes at this position without a row. */
  unexplained: number;
  /** An allocator's small rows are listed, too. */
  allocator: boolean;
  /** A single moment: rows have no lifetimes. */
  moment: boolean;
  /** Timestamps of an allocator's positions. */
  times: Float64Array | null;
  position: number;
  length: number;
  fileName: string;
}

/** Return the search, and 1 for each row below a label that matches in the tree of the breakdown. */
function useRowSearch(
  typed: string,
  { rows, complete }: AvailableRows,
  compiled: boolean,
): { search: Search; found: Uint8Array | null } {
  const { tree } = useTree(complete ? rows : null, compiled, typed !== "");
  const searched = useMemo(() => ({ rows, tree }), [rows, tree]);
  const search = useSearch(typed, searched, (of) => [
    ...rowTexts(of.rows),
    ...(of.tree === null ? [] : treeTexts(of.tree)),
  ]);
  const found = useMemo(
    () => (tree === null || search.empty ? null : rowsBelowMatches(tree, search)),
    [tree, search],
  );
  return { search, found };
}

/** Table of the buffers live at the inspected position: sorted, filtered, grouped, copied and saved. */
function BufferTable(props: Props) {
  const { available, live, unexplained, allocator, moment, times, position, length, fileName } = props;
  const { rows } = available;
  const terms = useTerms();
  const printing = useContext(PrintingContext);
  const chosen = useViewState((state) => state.group);
  const selected = available.indexOf(useViewState((state) => state.selected));
  const hovered = available.indexOf(useViewState((state) => state.hovered));
  const sharers = useViewState((state) => state.show_sharing);
  const expanded = useViewState((state) => state.expanded);

  const wanted = useMemo(
    () => (sharers ? Uint32Array.from([...live, ...sharersAt(rows, position)]).sort() : live),
    [rows, live, position, sharers],
  );
  const { columns, saved } = useMemo(() => {
    const source = { rows, places: available.places, terms };
    return allocator ? allocationColumns(source, times) : bufferColumns(source, moment ? null : length);
  }, [allocator, moment, available, times, length, terms]);
  const table = useTable(columns, LARGEST_FIRST);
  const { size, sort, shown, template } = table;
  const { search, found } = useRowSearch(table.search, available, !allocator && !moment);
  const filtered = useMemo(
    () => filterRows(rows, wanted, search, size, found),
    [rows, wanted, search, size, found],
  );
  const automatic = useMemo(() => firstGroup(rows, allocator), [rows, allocator]);
  const group = chosen === "auto" ? automatic : chosen;
  const sortBy = (members: readonly number[]): readonly number[] => {
    const by = shown.find(({ key }) => key === sort.key);
    return by === undefined ? members : sortRows(members, by, sort.descending);
  };
  const lines = useMemo(() => {
    const toggled = readExpanded(expanded);
    const isOpen = (key: string): boolean => toggled.has(key) || printing;
    return tableLines(rows, filtered.rows, { by: group, allocator, isOpen, sort: sortBy });
  }, [rows, filtered, group, allocator, expanded, printing, shown, sort]);
  const folder = useMemo(
    () =>
      group === "source"
        ? commonFolder(lines.flatMap((line) => (line.kind === "group" && line.known ? [line.label] : [])))
        : "",
    [lines, group],
  );
  // A filter cannot match bytes without a row.
  const rest = unexplained !== 0 && filtered.rows === wanted ? unexplained : 0;
  const lastLine = rest === 0 ? null : { name: UNEXPLAINED, charge_bytes: rest };
  // Rows may exceed the bytes in use: shares are of whichever is more.
  const total = liveBytes(rows, live) + Math.max(unexplained, 0);
  const keys = useMemo(() => groupKeys(rows), [rows]);

  const select = (row: number): void => {
    const number = available.numberOf(row);
    store.set({ selected: number === store.get().selected ? null : number });
  };
  const selectNext = (by: number): void => {
    const order = lines.flatMap((line) => (line.kind === "row" ? [line.row] : []));
    if (order.length === 0) return;
    store.set({ selected: available.numberOf(order[stepLine(order.indexOf(selected), by, order.length)]) });
  };
  const selectedLine = lines.findIndex((line) => line.kind === "row" && line.row === selected);

  return (
    <section
      class="buffer-table"
      data-testid="buffer-table"
      aria-label={`${capitalize(terms.items)} ${terms.live} at the inspected ${terms.position}`}
    >
      <DataTable
        {...{ table, fileName }}
        options={
          <>
            <GroupChoice
              {...{ group, keys }}
              onPick={(picked) => store.set({ group: picked === automatic ? "auto" : picked })}
            />
            {!allocator && !moment && (
              <Toggle
                label="Sharers"
                title="List buffers that share the memory of another one, too"
                on={sharers}
                onChange={(on) => store.set({ show_sharing: on })}
              />
            )}
          </>
        }
        note={<MissingNote {...{ lines, group }} nameless={automatic === "size"} />}
        errors={filtered.errors}
        summary={
          `${formatCount(filtered.rows.length)} of ${formatCounted(wanted.length, terms.item, terms.items)}, ` +
          formatBytes(liveBytes(rows, filtered.rows)) +
          (rest === 0 ? "" : `, and ${formatBytes(rest)} ${terms.unexplained}`)
        }
        csv={() => rowsCsv(sortBy([...filtered.rows]), saved, lastLine)}
        count={lines.length + (rest === 0 ? 0 : 1)}
        at={selectedLine}
        empty={
          wanted.length === 0
            ? `Nothing is ${terms.live} at this ${terms.position}.`
            : `No ${terms.item} matches the filter.`
        }
        label={capitalize(terms.items)}
        onStep={selectNext}
        line={(i, id) => {
          if (i >= lines.length)
            return <UnexplainedLine {...{ bytes: rest, total, template }} columns={shown} />;
          const line = lines[i];
          if (line.kind !== "row")
            return (
              <GroupLine
                {...{ line, folder, template, total }}
                columns={shown}
                onToggle={() => store.set({ expanded: toggleExpanded(expanded, line.key) })}
              />
            );
          const { row } = line;
          return (
            <TableRow
              {...{ id, row, template }}
              columns={shown}
              testid="buffer-row"
              selected={row === selected}
              look={[row === hovered && "hovered", rows.charge[row] === 0 && "shares"]
                .filter(Boolean)
                .join(" ")}
              onPick={() => select(row)}
              onHover={(over) => store.set({ hovered: over ? available.numberOf(row) : null })}
            />
          );
        }}
      />
    </section>
  );
}

/** Table of what is live at the inspected position, or in the selected range, below a heading that says so. */
export function Buffers({ view, available, program }: LiveProps) {
  const of = useLiveRows({ view, available, program });
  const { axis, title, memory } = view.recording;
  return (
    <section aria-label="Buffers" data-testid="buffers">
      <header class="section-head">
        <LiveHeading {...{ view, available, program, of }} testid="buffers-heading" />
      </header>
      <BufferTable
        available={available}
        allocator={axis === "TIME"}
        moment={axis === "INSTANT"}
        position={of.first}
        live={of.filtered}
        unexplained={of.unexplainedShown}
        times={program?.time_ns ?? null}
        length={view.length}
        fileName={`${title}-${memory}-at-${of.first}.csv`}
      />
    </section>
  );
}
