import type { Rows } from "../payload/recording";
import { ROLES } from "../payload/recording";
import { expansion } from "./table_order";

const HEADINGS = [
  "name",
  "category",
  "size_bytes",
  "unpadded_bytes",
  "expansion",
  "shape",
  "op",
  "op_name",
  "source",
  "defined_at",
  "last_used_at",
];

/** The rows as CSV, sizes in bytes. */
export function toCsv(rows: Rows, selected: Iterable<number>): string {
  const lines = Array.from(selected, (row) => [
    rows.name.at(row),
    ROLES[rows.role[row]],
    rows.size[row],
    rows.unpadded[row],
    expansion(rows, row).toFixed(3),
    rows.shape.at(row),
    rows.op.at(row),
    rows.op_name.at(row),
    rows.source.at(row),
    rows.defined[row],
    rows.last_used[row],
  ]);
  return csvOf(HEADINGS, lines);
}

/** Lines of text as RFC 4180 has them: they end in CRLF, quotes are doubled. */
export function csvOf(headings: readonly string[], lines: readonly (readonly (string | number)[])[]): string {
  const text = [headings, ...lines].map((line) => line.map(field).join(","));
  return text.join("\r\n") + "\r\n";
}

function field(value: string | number): string {
  if (typeof value === "number") return String(value);
  // Spreadsheets run a text that begins like a formula; op names come from whoever wrote the profile.
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
