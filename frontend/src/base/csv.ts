/** Lines of text as RFC 4180 has them: they end in CRLF, quotes are doubled. */
export function formatCsv(
  headings: readonly string[],
  lines: readonly (readonly (string | number)[])[],
): string {
  const text = [headings, ...lines].map((line) => line.map(field).join(","));
  return text.join("\r\n") + "\r\n";
}

function field(value: string | number): string {
  if (typeof value === "number") return String(value);
  // Spreadsheets run a text that begins like a formula; op names come from whoever wrote the profile.
  const safe = /^[=+\-@\t\r\n]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
