import { fileUrl } from "../../payload/report/embedded";

/**
 * Starts a worker from a file of our own. Hosts forbid those made from a blob, and a report has nothing else: there
 * browsers start plain scripts only, so that is what workers are built as.
 */
export function startWorker(url: string): Worker {
  return new Worker(fileUrl(url), { type: import.meta.env.DEV ? "module" : "classic" });
}
