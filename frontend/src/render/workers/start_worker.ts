import { fileUrl } from "../../payload/report";

/** Workers that nothing uses yet, by URL. */
const prepared = new Map<string, Worker>();

/** Start a worker for the next call of `startWorker`, because a server that reads a large file sends scripts late. */
export function prepareWorker(url: string): void {
  if (prepared.has(url)) return;
  const worker = newWorker(url);
  prepared.set(url, worker);
  // The worker that startWorker then starts reports its own error.
  worker.onerror = () => prepared.delete(url);
}

/** Return a worker that was prepared, or start one. */
export function startWorker(url: string): Worker {
  const worker = prepared.get(url);
  prepared.delete(url);
  return worker ?? newWorker(url);
}

/**
 * Start a worker from one of the page's files. Hosts forbid workers from blobs, but an offline report has no
 * other source. Browsers start only classic scripts from blobs, so workers are built as classic scripts.
 */
function newWorker(url: string): Worker {
  return new Worker(fileUrl(url), { type: import.meta.env.DEV ? "module" : "classic" });
}
