import { Painter } from "./painter";
import { answer, type Reply, type Request, returnedWith } from "./protocol";

/** The side of a worker that it sees of itself; the DOM's types describe only the page's side. */
interface WorkerScope {
  onmessage: ((event: MessageEvent<Request>) => void) | null;
  postMessage(reply: Reply, transfer: Transferable[]): void;
}

const scope = self as unknown as WorkerScope;
const painter = new Painter();

scope.onmessage = ({ data }) => {
  const reply = answerOf(data);
  if (reply !== null) scope.postMessage(reply, returnedWith(reply));
};

function answerOf(request: Request): Reply | null {
  try {
    return answer(painter, request);
  } catch (error) {
    return { kind: "failed", message: error instanceof Error ? error.message : String(error) };
  }
}
