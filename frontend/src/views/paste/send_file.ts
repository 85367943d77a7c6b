import type { Api } from "../../payload/api";
import type { OpenedFile } from "../../payload/generated/answers";

/** Small enough for the server to keep each piece in memory while it arrives. */
const PIECE_BYTES = 384 * 2 ** 10;

/** Send a file in pieces. Resolves with the answer to the last piece, or to one that is refused. */
export async function sendFile(
  api: Api,
  file: File,
  signal: AbortSignal,
  onReceived: (bytes: number) => void,
): Promise<OpenedFile> {
  if (file.size === 0) throw new Error(`${file.name} is empty`);
  const key = [...crypto.getRandomValues(new Uint32Array(4))].join("-");
  for (let at = 0; ; at += PIECE_BYTES) {
    const query = { key, name: file.name, size: file.size, at };
    const answer = await api.openFile(query, file.slice(at, at + PIECE_BYTES), signal);
    onReceived(answer.received);
    if (answer.message !== null || answer.received >= file.size) return answer;
  }
}
