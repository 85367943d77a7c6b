import { type Placement, placeRows } from "../../layout/stacking/stacking";
import workerUrl from "./placement_worker?worker&url";
import type { PlacementReply, PlacementRequest } from "./protocol";
import { prepareWorker, startWorker } from "./start_worker";

/** Fewer rows are placed in the page, faster than a worker starts. */
const MAX_IN_PAGE = 20_000;

/** Start the worker for the next placement. */
export function preparePlacement(): void {
  prepareWorker(workerUrl);
}

/**
 * Place rows, in a worker if there are many. Return a function that cancels the placement; no callback runs
 * after it.
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
  const worker = startWorker(workerUrl);
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
