/** Error texts are a few MiB at most. */
const MAX_TEXT_BYTES = 32 * 2 ** 20;

/** Names of texts; other names are those of profiles. */
const TEXT_NAME = /\.(txt|log|out|err)$|^[^.]*$/i;

/** Return true if a drag carries a file. */
export function hasFile(event: DragEvent): boolean {
  return event.dataTransfer?.types.includes("Files") ?? false;
}

/** Return the text or the profile that is dropped or pasted: the first file, or else the text. */
export async function readGiven(data: DataTransfer | null): Promise<string | File> {
  const file = data?.files[0];
  if (file === undefined) return data?.getData("text/plain") ?? "";
  const isText = TEXT_NAME.test(file.name) && file.size <= MAX_TEXT_BYTES;
  return isText ? file.text() : file;
}
