import { formatCsv } from "../../base/csv";
import type { Search } from "../../base/search";
import { byNumber } from "../../base/sort";
import { parseFilters } from "./table_filter";

/** A value of a row; null if it is unknown. */
export type Value = string | number | null;

/**
 * A field of the rows of a table: what it is sorted by, searched for, and saved as. A row may be its number in columns.
 */
export interface Field<Row> {
  /** Name in the URL. */
  key: string;
  value: (row: Row) => Value;
  /** Heading in a saved file; empty if the field is not saved. */
  csv: string;
  /** Value by which rows are sorted, if it is not the field's value. */
  order?: (row: Row) => Value;
  /** Rows with equal values are sorted by this, largest first in both directions. */
  ties?: (row: Row) => number;
}

/** Return the searched texts of a row. */
export function fieldTexts<Row>(fields: readonly Field<Row>[], row: Row): string[] {
  return fields.map(({ value }) => value(row)).filter((value) => typeof value === "string");
}

/** Values that filters test: the texts of a row, and its bytes (null: unknown). Without `bytes`, rows have no sizes. */
interface Filtered<Row> {
  texts: (row: Row) => readonly string[];
  bytes?: ((row: Row) => number | null) | undefined;
}

/** Return the rows that contain the search in any of their texts, and whose size, if any, matches the size filter. */
export function matchingRows<Row>(
  rows: readonly Row[],
  { texts, bytes }: Filtered<Row>,
  search: Search,
  size: string,
): { rows: readonly Row[]; errors: string[] } {
  const { text, matchesSize, errors } = parseFilters(search, bytes === undefined ? "" : size);
  const hasSize = (row: Row): boolean => {
    if (bytes === undefined || size.trim() === "") return true;
    const found = bytes(row);
    return found !== null && matchesSize(found);
  };
  const hasText = (row: Row): boolean => text.empty || texts(row).some((each) => text.matches(each));
  return { rows: rows.filter((row) => hasSize(row) && hasText(row)), errors };
}

/** Sort rows by a field. Unknown values come last in both directions; equal rows keep their order. */
export function sortRows<Row>(
  rows: readonly Row[],
  { value, order = value, ties }: Field<Row>,
  descending: boolean,
): readonly Row[] {
  const sign = descending ? -1 : 1;
  // Each value is read once, and texts are ranked, so that sorting 100,000 rows compares numbers.
  const ranks = rankValues(rows.map(order), sign * Infinity);
  const most = ties === undefined ? null : Float64Array.from(rows, ties);
  const places = Uint32Array.from(rows.keys()).sort(
    (a, b) => sign * (ranks[a] - ranks[b]) || (most === null ? 0 : most[b] - most[a]) || a - b,
  );
  return Array.from(places, (place) => rows[place]);
}

/** Return numbers in the order of the values. Numbers among texts are compared as texts. */
function rankValues(values: readonly Value[], unknown: number): Float64Array {
  if (!values.some((value) => typeof value === "string"))
    return Float64Array.from(values, (value) => (value === null ? unknown : Number(value)));
  const texts = [...new Set(values.map(String))].sort(byNumber);
  const ranks = new Map(texts.map((text, rank) => [text, rank]));
  return Float64Array.from(values, (value) =>
    value === null ? unknown : (ranks.get(String(value)) ?? unknown),
  );
}

/** Format rows as CSV, and a last line that has values of some headings. Unknown values are empty. */
export function rowsCsv<Row>(
  rows: Iterable<Row>,
  fields: readonly Field<Row>[],
  last: Partial<Record<string, Value>> | null = null,
): string {
  const saved = fields.filter(({ csv }) => csv !== "");
  const lines = Array.from(rows, (row) => ({ row }));
  return formatCsv(
    last === null ? lines : [...lines, null],
    saved.map(({ csv, value }) => [csv, (line) => (line === null ? (last?.[csv] ?? null) : value(line.row))]),
  );
}

/**
 * Return the text that all rows share, which is then shown in place of a column; empty if no row has a text. Null if
 * rows differ, or if there is only one row and it has a text.
 */
export function sameText<Row>(rows: readonly Row[], read: (row: Row) => string): string | null {
  const texts = new Set(rows.map(read));
  const [text = ""] = texts;
  return texts.size > 1 || (rows.length === 1 && text !== "") ? null : text;
}
