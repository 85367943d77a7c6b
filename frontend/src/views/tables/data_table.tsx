import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { readSorting, type Sorting, writeSorting } from "../../layout/url_values";
import { store, useViewState } from "../state/view_state";
import type { Column } from "./columns";
import { TableToolbar, type ToolbarProps } from "./table_toolbar";
import { type LinesProps, TableHead, VirtualLines } from "./virtual_lines";

/** Return a table's sorting, which the URL has, and its setter. `first` is the initial one: always the same object. */
export function useSorting<Key extends string>(
  columns: readonly { key: Key }[],
  first: Sorting<Key>,
  where: "sort" | "tree_sort" = "sort",
): [Sorting<Key>, (sorting: Sorting<Key>) => void] {
  const text = useViewState((state) => state[where]);
  const keys = columns.map(({ key }) => key);
  const sorting = useMemo(() => readSorting(text, keys, first), [text, keys.join(), first]);
  // The URL omits the initial sorting.
  const begins = writeSorting(first);
  const set = (next: Sorting<Key>): void => {
    const written = writeSorting(next);
    store.set({ [where]: written === begins ? "" : written });
  };
  return [sorting, set];
}

/** Filter and sorting of a table, which the URL carries, and the grid of its lines. */
interface TableState<Row> {
  search: string;
  size: string;
  sort: Sorting;
  onSort: (sort: Sorting) => void;
  /** Columns that rows differ in. */
  shown: readonly Column<Row>[];
  template: string;
  /** Columns that are the same in all rows, which are one line of text. */
  constant: readonly Column<Row>[];
}

/** `first` is the initial sorting: always the same object. */
export function useTable<Row>(
  columns: readonly Column<Row>[],
  first: Sorting,
  where?: "sort" | "tree_sort",
): TableState<Row> {
  const search = useViewState((state) => state.search);
  const size = useViewState((state) => state.size_filter);
  const { shown, constant } = useMemo(() => splitConstant(columns), [columns]);
  const [sort, onSort] = useSorting(shown, first, where);
  const template = shown.map(({ track }) => track).join(" ");
  return { search, size, sort, onSort, shown, template, constant };
}

/** Split columns into those that rows differ in, and those with a text that is the same in all rows. */
export function splitConstant<Row>(columns: readonly Column<Row>[]): {
  shown: Column<Row>[];
  constant: Column<Row>[];
} {
  return {
    shown: columns.filter(({ track, constant = null }) => track !== "" && constant === null),
    constant: columns.filter(({ constant = null }) => constant !== null && constant !== ""),
  };
}

interface Props<Row>
  extends Omit<ToolbarProps, "search" | "onSearch" | "size" | "onSize">, Omit<LinesProps, "head" | "role"> {
  table: TableState<Row>;
  /** False: rows have no size to filter by. */
  sized?: boolean;
  /** A remark above the lines. */
  note?: JSX.Element;
}

/** Lines below a toolbar to filter, copy and save, and headings that sort. */
export function DataTable<Row>(props: Props<Row>) {
  const { table, sized = true, options, errors, note, summary, csv, fileName, ...lines } = props;
  const { search, size, sort, onSort, shown, template, constant } = table;
  return (
    <>
      <TableToolbar
        {...{ options, errors, summary, csv, fileName, search, size }}
        onSearch={(text) => store.set({ search: text, search_match: null })}
        onSize={sized ? (text) => store.set({ size_filter: text }) : null}
      />
      {constant.length > 0 && (
        <p class="muted constant-columns" data-testid="constant-columns">
          Same in all rows:{" "}
          {constant.map(({ key, heading, constant: value }, i) => (
            <span key={key}>
              {i > 0 && ", "}
              {heading} <b>{value}</b>
            </span>
          ))}
        </p>
      )}
      {note}
      <VirtualLines {...lines} head={<TableHead {...{ columns: shown, template, sort, onSort }} />} />
    </>
  );
}

/** Return the line that is `steps` away; -1 without lines. */
export function stepLine(at: number, by: number, count: number): number {
  return count === 0 ? -1 : Math.min(Math.max(at + by, 0), count - 1);
}

interface RowProps<Row> {
  id: string;
  columns: readonly Column<Row>[];
  row: Row;
  template: string;
  testid: string;
  selected: boolean;
  /** Additional CSS classes. */
  look?: string;
  onPick: () => void;
  onHover?: (over: boolean) => void;
}

/** Line of a row's cells. */
export function TableRow<Row>(props: RowProps<Row>) {
  const { id, columns, row, template, testid, selected, look = "", onPick, onHover } = props;
  return (
    <div
      role="row"
      id={id}
      data-testid={testid}
      class={`table-line ${selected ? "selected" : ""} ${look}`}
      aria-selected={selected}
      style={{ gridTemplateColumns: template }}
      onClick={onPick}
      onMouseEnter={() => onHover?.(true)}
      onMouseLeave={() => onHover?.(false)}
    >
      {columns.map(({ key, numeric, cell }) => (
        <span key={key} role="gridcell" class={numeric ? "numeric" : ""}>
          {cell(row)}
        </span>
      ))}
    </div>
  );
}
