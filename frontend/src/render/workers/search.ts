import { plainSearch, type Search } from "../../base/search";
import type { SearchReply, SearchRequest } from "./protocol";
import workerUrl from "./search_worker?worker&url";
import { startWorker } from "./start_worker";

/** A browser's regular expressions may take exponential time, and a link may contain one. */
const MAX_MS = 2000;

/**
 * Search texts in a worker. If it takes too long, end it and match plain text only, with an error that says so.
 * Return a function that cancels the search; `found` is not called after it.
 */
export function startSearch(request: SearchRequest, found: (search: Search) => void): () => void {
  const plain = plainSearch(request.typed);
  const worker = startWorker(workerUrl);
  const end = (search: Search): void => {
    stop();
    found(search);
  };
  const timer = window.setTimeout(
    () => end({ ...plain, error: "the regular expression takes too long" }),
    MAX_MS,
  );
  const stop = (): void => {
    window.clearTimeout(timer);
    worker.terminate();
  };
  worker.onerror = (event) =>
    end({ ...plain, error: event.message || "the worker that searches could not be started" });
  worker.onmessage = ({ data }: MessageEvent<SearchReply>) => {
    const matching = new Set(data.matching);
    const packed = request.texts.filter((text) => typeof text !== "string");
    const found = new Map(packed.map(({ bytes }, i) => [bytes, data.found[i]]));
    end({ ...plain, matches: (text) => matching.has(text), patterns: null, found });
  };
  worker.postMessage(request);
  return stop;
}
