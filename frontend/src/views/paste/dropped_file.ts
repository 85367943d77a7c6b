/** Error texts are a few MiB at most. */
const MAX_BYTES = 32 * 2 ** 20;

/** Return true if a drag carries a file. */
export function hasFile(event: DragEvent): boolean {
  return event.dataTransfer?.types.includes("Files") ?? false;
}

/** Return the text of the first dropped file; empty if there is none, or if it is too large for an error text. */
export async function readText(event: DragEvent): Promise<string> {
  const file = event.dataTransfer?.files[0];
  return file === undefined || file.size > MAX_BYTES ? "" : file.text();
}
