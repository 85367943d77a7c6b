import { plainSearch, type Search } from "../../base/search";
import { type Placement, placeRows } from "../../layout/stacking/stacking";
import { fileUrl } from "../../payload/report";
import placementUrl from "./placement_worker?worker&url";
import type { PlacementReply, PlacementRequest, SearchReply, SearchRequest } from "./protocol";
import searchUrl from "./search_worker?worker&url";

/** Workers that nothing uses yet, by URL. */
const prepared = new Map<string, Worker>();

/** Start a worker for the next call of `startWorker`: a server that reads a large file sends the script late. */
export function prepareWorker(url: string): void {
  if (prepared.has(url)) return;
  const worker = newWorker(url);
  prepared.set(url, worker);
  // Then the next one reports its own error.
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

/** Fewer rows are placed in the page, faster than a worker starts. */
const MAX_IN_PAGE = 20_000;

/** Start the worker for the next placement. */
export function preparePlacement(): void {
  prepareWorker(placementUrl);
}

/**
 * Place rows, in a worker if there are many. Return a function that cancels the placement; no callback runs after it.
 */
export function startPlacement(
  request: PlacementRequest,
  on: {
    share: (share: number) => void;
    placed: (placing: Placement) => void;
    failed: (message: string) => void;
  },
): () => void {
  if (request.lifetimes.start.length < MAX_IN_PAGE) {
    on.placed(placeRows(request.layout, request.lifetimes, on.share));
    return () => {};
  }
  const worker = startWorker(placementUrl);
  worker.onerror = (event) => on.failed(event.message || "its worker could not be started");
  worker.onmessage = ({ data }: MessageEvent<PlacementReply>) => {
    if (data.kind === "share") {
      on.share(data.share);
      return;
    }
    worker.terminate();
    if (data.kind === "placed") on.placed(data.placing);
    else on.failed(data.message);
  };
  worker.postMessage(request);
  return () => worker.terminate();
}

/** A browser's regular expressions may take exponential time, and a link may contain one. */
const MAX_MS = 2000;

/**
 * Search texts in a worker, and end it if it takes too long: then only plain text matches, and the error says so.
 * Return a function that cancels the search; `found` is not called after it.
 */
export function startSearch(request: SearchRequest, found: (search: Search) => void): () => void {
  const plain = plainSearch(request.typed);
  const worker = startWorker(searchUrl);
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
