import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { formatCount, formatCounted } from "../../base/units";
import { fieldTexts, matchingRows, rowsCsv, sortRows } from "../../layout/table/fields";
import type { Sorting } from "../../layout/url_values";
import { saveText } from "../browser/export";
import { useSearch } from "../data/use_search";
import type { Column } from "./columns";
import { DataTable, stepLine, TableRow, useTable } from "./data_table";
import { type LineKeys, TableHead, VirtualLines } from "./virtual_lines";

interface TableProps<Row> {
  /** Always the same list for the same rows. */
  columns: readonly Column<Row>[];
  /** Columns of the saved file, where their order is another. */
  saved?: readonly Column<Row>[];
  rows: readonly Row[];
  /** Bytes that the size filter looks at; null if unknown. Without it, there is no such filter. */
  bytes?: (row: Row) => number | null;
  /** Texts that a search looks at; without it, those of the columns. */
  texts?: (row: Row) => readonly string[];
  /** Initial sorting, always the same object; without it, the given order. */
  first?: Sorting;
  /** Field of the URL that contains the sorting. */
  where?: "sort" | "tree_sort";
  /** Return the lines of sorted rows, some of which may be one line; always the same function for the same lines. */
  fold?: (sorted: readonly Row[]) => readonly Row[];
  label: string;
  /** Test id of a row. */
  testid: string;
  /** What a row is, in the singular. */
  noun: string;
  fileName: string;
  /** Text above the rows, where that is not the number of `shown` ones and of all. */
  summary?: (shown: number) => string;
  /** Text in place of rows, where that is not that none matches. */
  empty?: string;
  /** Controls that choose the rows. */
  options?: JSX.Element | undefined;
  /** Heading in place of the toolbar, where another table of the page has the filter. */
  heading?: JSX.Element;
  isSelected?: (row: Row) => boolean;
  /** Arrow keys select a row. Without it, the table itself remembers the row. */
  onSelect?: (row: Row) => void;
  /** A click or Enter opens a row. */
  open?: (row: Row) => void;
  /** Whether a click on a row does something; without it, on all rows that `open` is for. */
  canOpen?: (row: Row) => boolean;
  onHover?: (row: Row | null) => void;
  /** Actions of further keys on the selected row. */
  keys?: Partial<Record<string, (row: Row) => void>>;
}

/** The given order. */
const IN_ORDER: Sorting = { key: "", descending: false };

/** Table whose columns define search, sorting and the saved file. */
export function Table<Row>(props: TableProps<Row>) {
  const { columns, saved = columns, rows, bytes, fold, label, testid, noun, fileName } = props;
  const { isSelected, onSelect, open, canOpen = () => open !== undefined, onHover } = props;
  const table = useTable(columns, props.first ?? IN_ORDER, props.where);
  const { size, sort, onSort, shown, template } = table;
  const source = useMemo(() => {
    const { texts = (row: Row) => fieldTexts(columns, row) } = props;
    return { rows, texts, bytes };
  }, [rows, columns]);
  const search = useSearch(table.search, source, (of) => of.rows.flatMap(of.texts));
  const filtered = useMemo(() => matchingRows(rows, source, search, size), [source, search, size]);
  const { sorted, lines } = useMemo(() => {
    const by = shown.find(({ key }) => key === sort.key);
    const found = by === undefined ? filtered.rows : sortRows(filtered.rows, by, sort.descending);
    return { sorted: found, lines: fold?.(found) ?? found };
  }, [filtered, columns, sort, fold]);
  const [own, setOwn] = useState(-1);
  const at = onSelect === undefined ? own : lines.findIndex((row) => isSelected?.(row) === true);
  const onStep = (by: number): void => {
    const next = stepLine(at, by, lines.length);
    if (onSelect === undefined) setOwn(next);
    else if (next >= 0) onSelect(lines[next]);
  };
  const keys: LineKeys = { Enter: (i) => open?.(lines[i]) };
  for (const [key, act] of Object.entries(props.keys ?? {})) keys[key] = (i) => act?.(lines[i]);
  const shared = {
    ...{ at, label, onStep, keys },
    count: lines.length,
    empty: props.empty ?? `No ${noun} matches the filter.`,
    line: (i: number, id: string) => (
      <TableRow
        {...{ id, template, testid }}
        columns={shown}
        row={lines[i]}
        selected={i === at || isSelected?.(lines[i]) === true}
        look={canOpen(lines[i]) ? "" : "inert"}
        onPick={() => open?.(lines[i])}
        onHover={(over) => onHover?.(over ? lines[i] : null)}
      />
    ),
  };
  const csv = (): string => rowsCsv(sorted, saved);
  if (props.heading !== undefined)
    return (
      <>
        <header class="section-head">
          {props.heading}
          <span class="spacer" />
          <button onClick={() => saveText(csv(), fileName)}>Save CSV</button>
        </header>
        <VirtualLines {...shared} head={<TableHead {...{ columns: shown, template, sort, onSort }} />} />
      </>
    );
  const all = formatCounted(rows.length, noun);
  const number = sorted.length;
  return (
    <DataTable
      {...{ table, csv, fileName, ...shared }}
      sized={bytes !== undefined}
      options={props.options}
      errors={filtered.errors}
      summary={props.summary?.(number) ?? (number === rows.length ? all : `${formatCount(number)} of ${all}`)}
    />
  );
}

/** Tables that fit into a narrow window. */
const FEW_COLUMNS = 4;

/** Table of a section's list. */
export function ListTable<Row>(props: TableProps<Row>) {
  const { columns, testid } = props;
  return (
    <div class={columns.length <= FEW_COLUMNS ? "list-table few-columns" : "list-table"} data-testid={testid}>
      <Table {...props} testid={`${testid}-row`} />
    </div>
  );
}
