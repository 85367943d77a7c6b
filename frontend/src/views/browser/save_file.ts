/** Download a file. */
export function saveBlob(blob: Blob, name: string): void {
  const link = document.createElement("a");
  const url = URL.createObjectURL(blob);
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}

/** Download a table as CSV. */
export function saveText(text: string, name: string): void {
  saveBlob(new Blob([text], { type: "text/csv" }), name);
}
