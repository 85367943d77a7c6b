import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Store } from "../../base/store";
import { formatCounted } from "../../base/units";
import type { Field } from "../../layout/fleet/list_rows";
import { fieldTexts, filterList, listCsv, sortList } from "../../layout/fleet/list_rows";
import { useSearch } from "../data/use_search";
import type { ViewState } from "../state/view_state";
import type { Column } from "../tables/data_table";
import { Cell, DataTable, stepLine, TableRow, useTable } from "../tables/data_table";

export interface ListColumn<Row> extends Column<string>, Field<Row> {
  cell: (row: Row) => JSX.Element | string;
}

interface Props<Row> {
  store: Store<ViewState>;
  /** Always the same list for the same columns. */
  columns: readonly ListColumn<Row>[];
  rows: readonly Row[];
  /** Bytes that the size filter looks at; null if unknown. Without it, there is no such filter. */
  bytes?: (row: Row) => number | null;
  label: string;
  testid: string;
  /** What a row is, in the singular. */
  noun: string;
  fileName: string;
  isSelected?: (row: Row) => boolean;
  open?: (row: Row) => void;
  /** Whether a click on a row does something; without it, on all rows that `open` is for. */
  canOpen?: (row: Row) => boolean;
  onHover?: (row: Row | null) => void;
}

/** Tables that fit into a narrow window. */
const FEW_COLUMNS = 3;
/** The given order. */
const IN_ORDER = { key: "", descending: false } as const;

/** Table of a list, whose columns define search, sorting and the saved file; a click or Enter opens a row. */
export function ListTable<Row>(props: Props<Row>): JSX.Element {
  const { store, columns, rows, bytes, label, testid, noun, fileName, isSelected, open, onHover } = props;
  const { canOpen = () => open !== undefined } = props;
  const [at, setAt] = useState(-1);
  const table = useTable<string>(store, columns, IN_ORDER);
  const { size, sort, template } = table;
  const search = useSearch(table.search, rows, (of) => of.flatMap((row) => fieldTexts(columns, row)));
  const filtered = useMemo(
    () => filterList(rows, columns, bytes ?? null, search, size),
    [rows, columns, search, size],
  );
  const lines = useMemo(() => sortList(filtered.rows, columns, sort), [filtered, columns, sort]);
  const all = formatCounted(rows.length, noun);
  return (
    <div class={columns.length <= FEW_COLUMNS ? "list-table few-columns" : "list-table"} data-testid={testid}>
      <DataTable
        {...{ store, table, fileName, label }}
        sized={bytes !== undefined}
        errors={filtered.errors}
        summary={lines.length === rows.length ? all : `${lines.length} of ${all}`}
        csv={() => listCsv(lines, columns)}
        count={lines.length}
        at={at}
        empty={`No ${noun} matches the filter.`}
        onStep={(by) => setAt(stepLine(at, by, lines.length))}
        keys={{ Enter: (i) => open?.(lines[i]) }}
        line={(i, id) => (
          <TableRow
            {...{ id, template }}
            testid={`${testid}-row`}
            selected={i === at || isSelected?.(lines[i]) === true}
            look={canOpen(lines[i]) ? "" : "inert"}
            onPick={() => open?.(lines[i])}
            onHover={(over) => onHover?.(over ? lines[i] : null)}
          >
            {columns.map((each) => (
              <Cell key={each.key} numeric={each.numeric}>
                {each.cell(lines[i])}
              </Cell>
            ))}
          </TableRow>
        )}
      />
    </div>
  );
}

/** Return a column of text, whose title has all of it. */
export function textColumn<Row>(
  key: string,
  heading: string,
  about: string,
  track: string,
  csv: string,
  value: (row: Row) => string | null,
): ListColumn<Row> {
  const cell = (row: Row): JSX.Element => <span title={value(row) ?? ""}>{value(row) ?? "–"}</span>;
  return { key, heading, about, track, csv, value, cell, numeric: false };
}

/** Return a column of numbers, which `format` shows. */
export function numberColumn<Row>(
  key: string,
  heading: string,
  about: string,
  track: string,
  csv: string,
  value: (row: Row) => number | null,
  format: (value: number, row: Row) => JSX.Element | string,
): ListColumn<Row> {
  const cell = (row: Row): JSX.Element | string => {
    const found = value(row);
    return found === null ? <span class="muted">–</span> : format(found, row);
  };
  return { key, heading, about, track, csv, value, cell, numeric: true };
}

/** What a click on a row does. The row itself takes the click. */
export function OpenLink({ text }: { text: string }): JSX.Element {
  return (
    <button class="link" tabindex={-1}>
      {text}
    </button>
  );
}

/** Format a time as a session's name states it. */
export function dateText(seconds: number | null): string | null {
  return seconds === null ? null : new Date(1000 * seconds).toISOString().slice(0, 19).replace("T", " ");
}
