import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Search } from "../../base/search";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import { formatBytes, formatCount, formatCounted } from "../../base/units";
import { allocationsCsv } from "../../layout/table/allocations_csv";
import { buffersCsv } from "../../layout/table/buffers_csv";
import { groupKeys } from "../../layout/table/grouping";
import { liveBytes, sharersAt } from "../../layout/usage/live_set";
import { readExpanded, toggleExpanded } from "../../layout/url_values/expanded";
import { constantText, isBlank, splitConstant } from "../../layout/table/constant_columns";
import { filterRows, rowTexts } from "../../layout/table/table_filter";
import { rowsBelowMatches, treeTexts } from "../../layout/tree/tree_search";
import type { Tree } from "../../layout/tree/tree";
import { tableLines } from "../../layout/table/table_lines";
import type { RowSort, RowSortKey } from "../../layout/table/row_order";
import { sortRows } from "../../layout/table/row_order";
import type { Rows } from "../../payload/recording/rows";
import type { ViewState } from "../state/view_state";
import { capitalize, useTerms } from "../data/terms";
import { DataTable, stepLine, useTable } from "../tables/data_table";
import { GroupLine, UnexplainedLine } from "./group_line";
import { GroupChoice } from "./group_choice";
import type { AvailableRows } from "../data/available_rows";
import { allocationColumns, bufferColumns, type ColumnView, momentColumns } from "./columns";
import { RowLine } from "./row_line";
import { Toggle } from "../widgets/toggle";
import { useSearch } from "../data/use_search";

const LARGEST_FIRST: RowSort = { key: "size", descending: true };

interface Props {
  available: AvailableRows;
  /** Tree shown above the table, whose labels a search looks at, too; null without one. */
  tree: Tree | null;
  live: Uint32Array;
  /** Live bytes at this position without a row. */
  unexplained: number;
  /** An allocator's rows are always grouped, and all of them are listed. */
  allocator: boolean;
  /** A single moment: rows have no lifetimes. */
  moment: boolean;
  /** Timestamps of an allocator's positions. */
  times: Float64Array | null;
  position: number;
  length: number;
  fileName: string;
  store: Store<ViewState>;
  dark: boolean;
}

/** Return the search, and 1 for each row below a label of the tree that matches. */
function useRowSearch(
  typed: string,
  rows: Rows,
  tree: Tree | null,
): { search: Search; found: Uint8Array | null } {
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
export function BufferTable(props: Props): JSX.Element {
  const { available, live, unexplained, allocator, moment, times, position, length, fileName, store, dark } =
    props;
  const { rows } = available;
  const { tree } = props;
  const terms = useTerms();
  const group = useStore(store, (state) => state.group);
  const selected = available.indexOf(useStore(store, (state) => state.selected));
  const hovered = available.indexOf(useStore(store, (state) => state.hovered));
  const grouped = useStore(store, (state) => state.group_by_role);
  const sharers = useStore(store, (state) => state.show_sharing);
  const expanded = useStore(store, (state) => state.expanded);

  const wanted = useMemo(
    () => (sharers ? Uint32Array.from([...live, ...sharersAt(rows, position)]) : live),
    [rows, live, position, sharers],
  );
  const { columns, constant } = useMemo(() => {
    const all = allocator
      ? allocationColumns(times, terms)
      : moment
        ? momentColumns()
        : bufferColumns(length);
    return splitConstant<ColumnView, RowSortKey>(all, (key) =>
      isBlank(rows, key) ? "" : constantText(rows, key),
    );
  }, [allocator, moment, rows, times, length, terms]);
  const table = useTable(store, columns, LARGEST_FIRST, constant);
  const { size, sort, template } = table;
  const { search, found } = useRowSearch(table.search, rows, tree);
  const filtered = useMemo(
    () => filterRows(rows, wanted, search, size, found),
    [rows, wanted, search, size, found],
  );
  const sorted = useMemo(() => sortRows(rows, filtered.rows, sort, times), [rows, filtered, sort, times]);
  const by = allocator ? group : grouped ? "role" : "none";
  const lines = useMemo(() => {
    // An allocator's groups are collapsed at first; a program's few roles are headings of expanded groups.
    const toggled = readExpanded(expanded);
    const isOpen = (kind: "group" | "small", key: string): boolean =>
      toggled.has(key) !== (kind === "group" && !allocator);
    return tableLines(rows, sorted, { by, foldsSmall: !allocator, isOpen });
  }, [rows, sorted, by, allocator, expanded]);
  // A filter cannot match bytes without a row.
  const rest = unexplained !== 0 && filtered.rows === wanted ? unexplained : 0;
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
        {...{ store, table, fileName }}
        options={
          allocator ? (
            <GroupChoice group={group} keys={keys} onPick={(picked) => store.set({ group: picked })} />
          ) : (
            <>
              <Toggle label="By category" on={grouped} onChange={(on) => store.set({ group_by_role: on })} />
              {!moment && (
                <Toggle
                  label="Sharers"
                  title="List buffers that share the memory of another one, too"
                  on={sharers}
                  onChange={(on) => store.set({ show_sharing: on })}
                />
              )}
            </>
          )
        }
        errors={filtered.errors}
        summary={`${formatCount(sorted.length)} of ${formatCounted(wanted.length, terms.item, terms.items)}, ${formatBytes(liveBytes(rows, sorted))}${rest === 0 ? "" : `, and ${formatBytes(rest)} ${terms.unexplained}`}`}
        csv={() =>
          times === null
            ? buffersCsv(rows, sorted, available.places)
            : allocationsCsv(rows, sorted, available.places, times, rest)
        }
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
          if (i >= lines.length) return <UnexplainedLine {...{ bytes: rest, total, columns, template }} />;
          const line = lines[i];
          if (line.kind === "row")
            return (
              <RowLine
                {...{ id, rows, columns, template, dark }}
                row={line.row}
                selected={line.row === selected}
                hovered={line.row === hovered}
                onPick={() => select(line.row)}
                onHover={(over) => store.set({ hovered: over ? available.numberOf(line.row) : null })}
              />
            );
          return (
            <GroupLine
              {...{ line, columns, template }}
              total={allocator ? total : null}
              onToggle={() => store.set({ expanded: toggleExpanded(expanded, line.key) })}
            />
          );
        }}
      />
    </section>
  );
}
