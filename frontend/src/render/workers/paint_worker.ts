import { messageOf } from "../../base/errors";
import { Painter } from "../painter/painter";
import { handleRequest, type PaintReply, type PaintRequest, replyTransfers } from "./protocol";

/** The worker's own global scope. The DOM types describe only the page's side. */
interface WorkerScope {
  onmessage: ((event: MessageEvent<PaintRequest>) => void) | null;
  postMessage(reply: PaintReply, transfer: Transferable[]): void;
}

const scope = self as unknown as WorkerScope;
const painter = new Painter();

scope.onmessage = ({ data }) => {
  const reply = handleOrFail(data);
  if (reply !== null) scope.postMessage(reply, replyTransfers(reply));
};

function handleOrFail(request: PaintRequest): PaintReply | null {
  try {
    return handleRequest(painter, request);
  } catch (error) {
    return { kind: "failed", message: messageOf(error) };
  }
}
