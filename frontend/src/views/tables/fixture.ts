/** What a table does with rows, for tests of its columns. */

import { rowsCsv, sortRows } from "../../layout/table/fields";
import type { Column } from "./columns";
import { splitConstant } from "./data_table";

/** Return rows sorted by the column with a key. */
export function sortedBy<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  key: string,
  descending = false,
): readonly Row[] {
  const by = splitConstant(columns).shown.find((each) => each.key === key);
  if (by === undefined) throw new Error(`The table has no column ${key}`);
  return sortRows(rows, by, descending);
}

/** Return the lines of a saved file: the headings, and a line for each row. */
export function savedLines<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string[] {
  return rowsCsv(rows, columns).trimEnd().split("\r\n");
}
