import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Search } from "../../base/search";
import { useStore } from "../../base/store";
import { formatBytes, formatCount, formatCounted } from "../../base/units";
import { rowsCsv, sortRows } from "../../layout/table/fields";
import { filterRows, rowTexts } from "../../layout/table/table_filter";
import { groupKeys, tableLines } from "../../layout/table/table_lines";
import { rowsBelowMatches, type Tree, treeTexts } from "../../layout/tree/tree";
import { readExpanded, type Sorting, toggleExpanded } from "../../layout/url_values";
import { liveBytes, sharersAt } from "../../layout/usage/live_set";
import type { Rows } from "../../payload/recording/rows";
import { capitalize, useTerms } from "../data/terms";
import type { AvailableRows } from "../data/use_recording";
import { useSearch } from "../data/use_search";
import type { ViewProps } from "../state/view_state";
import { DataTable, stepLine, TableRow, useTable } from "../tables/data_table";
import { Toggle } from "../widgets/choice";
import { allocationColumns, bufferColumns } from "./columns";
import { GroupChoice, GroupLine, UnexplainedLine } from "./groups";

/** Name of a saved file's last line: bytes that no row explains, so that the sum equals the allocator's own figure. */
const UNEXPLAINED = "stack, or unexplained by any allocation";

const LARGEST_FIRST: Sorting = { key: "size", descending: true };

interface Props extends ViewProps {
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
    () => (sharers ? Uint32Array.from([...live, ...sharersAt(rows, position)]).sort() : live),
    [rows, live, position, sharers],
  );
  const { columns, saved } = useMemo(() => {
    const source = { rows, places: available.places, terms, dark };
    return allocator ? allocationColumns(source, times) : bufferColumns(source, moment ? null : length);
  }, [allocator, moment, available, times, length, terms, dark]);
  const table = useTable(store, columns, LARGEST_FIRST);
  const { size, sort, shown, template } = table;
  const { search, found } = useRowSearch(table.search, rows, tree);
  const filtered = useMemo(
    () => filterRows(rows, wanted, search, size, found),
    [rows, wanted, search, size, found],
  );
  const sorted = useMemo(() => {
    const by = shown.find(({ key }) => key === sort.key);
    return by === undefined ? [...filtered.rows] : sortRows([...filtered.rows], by, sort.descending);
  }, [filtered, shown, sort]);
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
              <Toggle label="By role" on={grouped} onChange={(on) => store.set({ group_by_role: on })} />
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
        summary={
          `${formatCount(sorted.length)} of ${formatCounted(wanted.length, terms.item, terms.items)}, ` +
          formatBytes(liveBytes(rows, sorted)) +
          (rest === 0 ? "" : `, and ${formatBytes(rest)} ${terms.unexplained}`)
        }
        csv={() => rowsCsv(sorted, saved, rest === 0 ? null : { name: UNEXPLAINED, charge_bytes: rest })}
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
                {...{ line, template }}
                columns={shown}
                total={allocator ? total : null}
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
