import { fileUrl } from "../../payload/report/embedded";

/**
 * Start a worker from one of the page's files. Hosts forbid workers from blobs, but an offline report has no
 * other source. Browsers start only classic scripts from blobs, so workers are built as classic scripts.
 */
export function startWorker(url: string): Worker {
  return new Worker(fileUrl(url), { type: import.meta.env.DEV ? "module" : "classic" });
}
