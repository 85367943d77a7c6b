import type { ComponentChildren, JSX } from "preact";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import type { ConstantColumn } from "../../layout/table/constant_columns";
import type { Sorting } from "../../layout/url_values/sorting";
import type { ViewState } from "../state/view_state";
import { TableHead } from "./table_head";
import { TableToolbar } from "./table_toolbar";
import { useSorting } from "./use_sorting";
import { type LineKeys, VirtualLines } from "./virtual_lines";

export interface Column<Key extends string> {
  key: Key;
  heading: string;
  about: string;
  /** Track of the CSS grid of every line. */
  track: string;
  numeric: boolean;
}

/** Filter and sorting of a table, which the URL carries, and the grid of its lines. */
export interface TableState<Key extends string> {
  search: string;
  size: string;
  sort: Sorting<Key>;
  onSort: (sort: Sorting<Key>) => void;
  columns: readonly Column<Key>[];
  template: string;
  /** Columns that are left out, since they are the same in all rows. */
  constant: readonly ConstantColumn[];
}

/** `first` is the initial sorting: always the same object. */
export function useTable<Key extends string>(
  store: Store<ViewState>,
  columns: readonly Column<Key>[],
  first: Sorting<Key>,
  constant: readonly ConstantColumn[] = [],
): TableState<Key> {
  const search = useStore(store, (state) => state.search);
  const size = useStore(store, (state) => state.size_filter);
  const [sort, onSort] = useSorting(store, columns, first);
  const template = columns.map(({ track }) => track).join(" ");
  return { search, size, sort, onSort, columns, template, constant };
}

interface Props<Key extends string> {
  store: Store<ViewState>;
  table: TableState<Key>;
  /** False: rows have no size to filter by. */
  sized?: boolean;
  /** Controls that choose the rows. */
  options?: JSX.Element;
  /** Errors in the filter as typed. */
  errors: string[];
  summary: string;
  csv: () => string;
  fileName: string;
  count: number;
  /** Line that keys start from, kept visible; -1 for none. */
  at: number;
  empty: string;
  label: string;
  /** Movement by arrow and paging keys, in lines. */
  onStep: (by: number) => void;
  /** Actions of further keys on that line. */
  keys?: LineKeys;
  line: (index: number, id: string) => JSX.Element;
}

/** Table with a toolbar to filter, copy and save, sortable headings, and lines. */
export function DataTable<Key extends string>(props: Props<Key>): JSX.Element {
  const { store, table, sized = true, options, errors, summary, csv, fileName, ...lines } = props;
  const { search, size, sort, onSort, columns, template, constant } = table;
  return (
    <>
      <TableToolbar
        search={search}
        onSearch={(text) => store.set({ search: text, search_match: null })}
        size={size}
        onSize={sized ? (text) => store.set({ size_filter: text }) : null}
        {...{ options, errors, summary, csv, fileName }}
      />
      {constant.length > 0 && (
        <p class="muted constant-columns" data-testid="constant-columns">
          Same in all rows:{" "}
          {constant.map(([heading, value], i) => (
            <span key={heading}>
              {i > 0 && ", "}
              {heading} <b>{value}</b>
            </span>
          ))}
        </p>
      )}
      <VirtualLines {...lines} head={<TableHead {...{ columns, template, sort, onSort }} />} />
    </>
  );
}

/** Return the line that is `steps` away; -1 without lines. */
export function stepLine(at: number, by: number, count: number): number {
  return count === 0 ? -1 : Math.min(Math.max(at + by, 0), count - 1);
}

interface RowProps {
  id: string;
  template: string;
  testid: string;
  selected: boolean;
  /** Additional CSS classes. */
  look?: string;
  onPick: () => void;
  onHover?: (over: boolean) => void;
  children: ComponentChildren;
}

/** Line of cells. */
export function TableRow({ id, template, testid, selected, look = "", ...props }: RowProps): JSX.Element {
  return (
    <div
      role="row"
      id={id}
      data-testid={testid}
      class={`table-line ${selected ? "selected" : ""} ${look}`}
      aria-selected={selected}
      style={{ gridTemplateColumns: template }}
      onClick={props.onPick}
      onMouseEnter={() => props.onHover?.(true)}
      onMouseLeave={() => props.onHover?.(false)}
    >
      {props.children}
    </div>
  );
}

export function Cell(props: { numeric?: boolean; title?: string; children: ComponentChildren }): JSX.Element {
  return (
    <span role="gridcell" class={props.numeric === true ? "numeric" : ""} title={props.title ?? ""}>
      {props.children}
    </span>
  );
}
