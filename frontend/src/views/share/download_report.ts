import type { Api } from "../../payload/api";

/** The end of a complete report: a connection that ends early is no error in every browser and server. */
const END = "</html>";

/** Download the report of a run. Rejects where the server has none, or where it is incomplete. */
export async function downloadReport(
  api: Api,
  run: string,
  onProgress: (bytes: number) => void,
): Promise<{ blob: Blob; name: string }> {
  const response = await api.downloadReport(run);
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  const reader = response.body?.getReader();
  for (let read = await reader?.read(); read?.done === false; read = await reader?.read()) {
    pieces.push(read.value);
    bytes += read.value.length;
    onProgress(bytes);
  }
  const blob = new Blob(pieces, { type: "text/html" });
  if (!(await blob.slice(-64).text()).includes(END))
    throw new Error("The report is incomplete: the server stopped sending it. Try again.");
  return { blob, name: nameOf(response) ?? "memory-report.html" };
}

function nameOf(response: Response): string | undefined {
  return /filename="([\w.-]+)"/.exec(response.headers.get("Content-Disposition") ?? "")?.[1];
}
