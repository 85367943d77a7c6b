import { messageOf } from "../../base/errors";
import { placeRows } from "../../layout/stacking/stacking";
import type { PlacementReply, PlacementRequest, WorkerScope } from "./protocol";

const scope = self as unknown as WorkerScope<PlacementRequest, PlacementReply>;

scope.onmessage = ({ data: { layout, lifetimes } }) => {
  try {
    const placing = placeRows(layout, lifetimes, (share) => scope.postMessage({ kind: "share", share }));
    scope.postMessage({ kind: "placed", placing }, [placing.offset.buffer]);
  } catch (error) {
    scope.postMessage({ kind: "failed", message: messageOf(error) });
  }
};
