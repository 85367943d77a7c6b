import { messageOf } from "../../base/errors";
import { Painter } from "../painter/painter";
import {
  handleRequest,
  type PaintReply,
  type PaintRequest,
  replyTransfers,
  type WorkerScope,
} from "./protocol";

const scope = self as unknown as WorkerScope<PaintRequest, PaintReply>;
const painter = new Painter();

scope.onmessage = ({ data }) => {
  try {
    const reply = handleRequest(painter, data);
    if (reply !== null) scope.postMessage(reply, replyTransfers(reply));
  } catch (error) {
    scope.postMessage({ kind: "failed", message: messageOf(error) });
  }
};
