/**
 * Operators in ASCII, in full-width and small forms, and the minus sign, which Excel reads alike; and the spaces,
 * control characters and zero-width characters that it skips before them. As in questions/export/formats.py.
 */
const FORMULA =
  // eslint-disable-next-line no-control-regex
  /^[=+\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u2060\ufeff]/;

/** A column of a file: its heading, and a function that reads its value of a row; null, unknown, becomes empty. */
export type CsvColumn<Row> = readonly [heading: string, read: (row: Row) => string | number | null];

/** Format rows as CSV (RFC 4180): lines end in CRLF, quotes are doubled. */
export function formatCsv<Row>(rows: Iterable<Row>, columns: readonly CsvColumn<Row>[]): string {
  const headings = columns.map(([heading]) => field(heading)).join(",");
  const lines = Array.from(rows, (row) => columns.map(([, read]) => field(read(row) ?? "")).join(","));
  return [headings, ...lines, ""].join("\r\n");
}

function field(value: string | number): string {
  if (typeof value === "number") return String(value);
  // Spreadsheets evaluate text that starts like a formula, and op names are untrusted.
  const safe = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
