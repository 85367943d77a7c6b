import { messageOf } from "../../base/errors";
import { placeRows } from "../../layout/stacking/stacking";
import type { PlacementReply, PlacementRequest } from "./protocol";

/** The worker's own global scope. The DOM types describe only the page's side. */
interface WorkerScope {
  onmessage: ((event: MessageEvent<PlacementRequest>) => void) | null;
  postMessage(reply: PlacementReply, transfer?: Transferable[]): void;
}

const scope = self as unknown as WorkerScope;

scope.onmessage = ({ data: { layout, lifetimes } }) => {
  try {
    const placing = placeRows(layout, lifetimes, (share) => scope.postMessage({ kind: "share", share }));
    scope.postMessage({ kind: "placed", placing }, [placing.offset.buffer]);
  } catch (error) {
    scope.postMessage({ kind: "failed", message: messageOf(error) });
  }
};
