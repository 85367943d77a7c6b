import { formatCsv } from "../../base/csv";
import type { Search } from "../../base/search";
import { parseFilters } from "../table/table_filter";
import type { Sorting } from "../url_values/sorting";

/** A field of the rows of a list: what it is sorted by, searched for, and saved as. */
export interface Field<Row> {
  key: string;
  /** Heading in a saved file. */
  csv: string;
  /** Null if unknown. */
  value: (row: Row) => number | string | null;
}

const collator = new Intl.Collator("en", { numeric: true });

/** Return the texts of a row that a search looks at. */
export function fieldTexts<Row>(fields: readonly Field<Row>[], row: Row): string[] {
  return fields.map(({ value }) => value(row)).filter((value) => typeof value === "string");
}

/** Return the rows with the search in any of their texts, and bytes that match the size filter, if they have any. */
export function filterList<Row>(
  rows: readonly Row[],
  fields: readonly Field<Row>[],
  bytes: ((row: Row) => number | null) | null,
  search: Search,
  size: string,
): { rows: readonly Row[]; errors: string[] } {
  const { text, matchesSize, errors } = parseFilters(search, bytes === null ? "" : size);
  const isSized = bytes !== null && size.trim() !== "";
  const hasSize = (row: Row): boolean => {
    const found = isSized ? bytes(row) : null;
    return !isSized || (found !== null && matchesSize(found));
  };
  const hasText = (row: Row): boolean =>
    text.empty || fieldTexts(fields, row).some((each) => text.matches(each));
  return { rows: rows.filter((row) => hasSize(row) && hasText(row)), errors };
}

/** Sort rows by a field. Unknown values come last in both directions; equal rows keep their order. */
export function sortList<Row>(
  rows: readonly Row[],
  fields: readonly Field<Row>[],
  { key, descending }: Sorting<string>,
): readonly Row[] {
  const field = fields.find((each) => each.key === key);
  if (field === undefined) return rows;
  const sign = descending ? -1 : 1;
  return rows.slice().sort((a, b) => {
    const [x, y] = [field.value(a), field.value(b)];
    if (x === null || y === null) return Number(x === null) - Number(y === null);
    return sign * (typeof x === "number" && typeof y === "number" ? x - y : collator.compare(`${x}`, `${y}`));
  });
}

/** Format rows as CSV. Unknown values are empty. */
export function listCsv<Row>(rows: readonly Row[], fields: readonly Field<Row>[]): string {
  return formatCsv(
    fields.map(({ csv }) => csv),
    rows.map((row) => fields.map(({ value }) => value(row) ?? "")),
  );
}
