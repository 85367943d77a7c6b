import type { Fixed, Lives, Placing } from "../layout/stacking";
import { place } from "../layout/stacking";
import workerUrl from "./placing_worker?worker&url";
import { startWorker } from "./start_worker";

/** What the page asks of a worker that places rows, and what comes back: from time to time how far it is, then all. */
export interface PlacingRequest {
  layout: Fixed;
  lives: Lives;
}

export type PlacingReply =
  | { kind: "share"; share: number }
  | { kind: "placed"; placing: Placing }
  | { kind: "failed"; message: string };

/** Fewer rows are placed at once, sooner than a worker starts. */
const AT_ONCE = 20_000;

/** Places rows, many of them in a worker. Returns the function that ends it, after which nothing is called back. */
export function startPlacing(
  request: PlacingRequest,
  on: {
    share: (share: number) => void;
    placed: (placing: Placing) => void;
    failed: (message: string) => void;
  },
): () => void {
  if (request.lives.start.length < AT_ONCE) {
    on.placed(place(request.layout, request.lives, on.share));
    return () => {};
  }
  const worker = startWorker(workerUrl);
  worker.onerror = (event) => on.failed(event.message || "its worker could not be started");
  worker.onmessage = ({ data }: MessageEvent<PlacingReply>) => {
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
