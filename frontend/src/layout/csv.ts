import type { Places } from "../payload/places";
import type { Rows } from "../payload/recording";
import { ROLES } from "../payload/recording";
import { expansion } from "./table_order";

/** As `tb-memplugin export` calls them. */
export const PLACE_HEADINGS = ["region", "offset_bytes", "address"] as const;

const HEADINGS = [
  "name",
  "category",
  "size_bytes",
  "requested_bytes",
  "expansion",
  "shape",
  "op",
  "op_name",
  "source",
  "defined_at",
  "last_used_at",
  ...PLACE_HEADINGS,
];

/** The rows as CSV, sizes in bytes. */
export function toCsv(rows: Rows, selected: Iterable<number>, places: Places): string {
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
    ...placeCells(rows, row, places),
  ]);
  return csvOf(HEADINGS, lines);
}

/** Empty where it is not known. */
export function placeCells({ offset }: Rows, row: number, places: Places): (number | string)[] {
  const known = (value: number): number | string => (value >= 0 ? value : "");
  return [known(places.region(row)), known(offset[row]), known(places.address(row))];
}

/** Lines of text as RFC 4180 has them: they end in CRLF, quotes are doubled. */
export function csvOf(headings: readonly string[], lines: readonly (readonly (string | number)[])[]): string {
  const text = [headings, ...lines].map((line) => line.map(field).join(","));
  return text.join("\r\n") + "\r\n";
}

function field(value: string | number): string {
  if (typeof value === "number") return String(value);
  // Spreadsheets run a text that begins like a formula; op names come from whoever wrote the profile.
  const safe = /^[=+\-@\t\r\n]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
