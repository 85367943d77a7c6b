import { place } from "../layout/stacking";
import type { PlacingReply, PlacingRequest } from "./placing";

/** The side of a worker that it sees of itself; the DOM's types describe only the page's side. */
interface WorkerScope {
  onmessage: ((event: MessageEvent<PlacingRequest>) => void) | null;
  postMessage(reply: PlacingReply, transfer?: Transferable[]): void;
}

const scope = self as unknown as WorkerScope;

scope.onmessage = ({ data: { layout, lives } }) => {
  try {
    const placing = place(layout, lives, (share) => scope.postMessage({ kind: "share", share }));
    scope.postMessage({ kind: "placed", placing }, [placing.offset.buffer]);
  } catch (error) {
    scope.postMessage({ kind: "failed", message: error instanceof Error ? error.message : String(error) });
  }
};
