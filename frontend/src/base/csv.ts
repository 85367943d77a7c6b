/**
 * Operators, also full-width, small and minus sign, which Excel reads like those of ASCII; and what it skips before
 * them: spaces, control characters, and characters without a width. As in views/export/csv.py.
 */
const FORMULA =
  // eslint-disable-next-line no-control-regex
  /^[=+\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u2060\ufeff]/;

/** Format lines as CSV (RFC 4180): lines end in CRLF, quotes are doubled. */
export function formatCsv(
  headings: readonly string[],
  lines: readonly (readonly (string | number)[])[],
): string {
  const text = [headings, ...lines].map((line) => line.map(field).join(","));
  return text.join("\r\n") + "\r\n";
}

function field(value: string | number): string {
  if (typeof value === "number") return String(value);
  // Spreadsheets evaluate text that starts like a formula, and op names are untrusted.
  const safe = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
