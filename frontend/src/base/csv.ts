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
  const safe = /^[=+\-@\t\r\n]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
