import { messageOf } from "../../base/errors";
import { Painter } from "../painter/painter";
import { handleRequest, type PaintReply, type PaintRequest, replyTransfers, workerScope } from "./protocol";

const scope = workerScope<PaintRequest, PaintReply>();
const painter = new Painter();

scope.onmessage = ({ data }) => {
  try {
    const reply = handleRequest(painter, data);
    if (reply !== null) scope.postMessage(reply, replyTransfers(reply));
  } catch (error) {
    scope.postMessage({ kind: "failed", message: messageOf(error) });
  }
};
