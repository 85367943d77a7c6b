/** Texts of errors are a few MiB at most; what is longer is some other file. */
const MAX_BYTES = 32 * 2 ** 20;

/** Whether a drag brings a file. */
export function hasFile(event: DragEvent): boolean {
  return event.dataTransfer?.types.includes("Files") ?? false;
}

/** The text of the first file dropped; empty where there is none, or none of a size that a text has. */
export async function readText(event: DragEvent): Promise<string> {
  const file = event.dataTransfer?.files[0];
  return file === undefined || file.size > MAX_BYTES ? "" : file.text();
}
