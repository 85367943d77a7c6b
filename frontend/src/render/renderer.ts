import type { Blocks } from "../layout/timeline_blocks";
import type { Order, Parts } from "./painter";
import { type Place, type Reply, type Request, sentWith } from "./protocol";
import type { Frame } from "./raster";

export type Drawn = Extract<Reply, { kind: "picture" }>;

/** One place's orders: at most one under way and one that waits, which newer ones replace. */
interface Queue {
  busy: boolean;
  waiting: Order | null;
  /** A frame that the page has done with. */
  spare: Frame | null;
  /** The frame that the page shows, and looks up rows in. */
  shown: Frame | null;
}

const newQueue = (): Queue => ({ busy: false, waiting: null, spare: null, shown: null });

/** The page's side of the painter. Pictures of a place arrive in order; of orders that wait only the last is drawn. */
export class TimelineRenderer {
  private readonly queues: Record<Place, Queue> = { plot: newQueue(), map: newQueue() };
  private readonly waitingForParts: ((parts: Parts) => void)[] = [];
  // A file of our own: hosts forbid workers made from a blob.
  private readonly worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });

  constructor(
    private readonly onDrawn: (drawn: Drawn) => void,
    private readonly onFailed: (message: string) => void,
  ) {
    this.worker.onmessage = ({ data }: MessageEvent<Reply>) => this.receive(data);
    this.worker.onerror = (event) => onFailed(event.message || "its worker could not be started");
  }

  /** Takes over the memory of `blocks` and `bands`. */
  setBlocks(blocks: Blocks, bands: Float64Array): void {
    this.send({ kind: "blocks", blocks, bands });
  }

  setLit(lit: Uint8Array | null): void {
    this.send({ kind: "lit", lit });
  }

  paint(place: Place, order: Order): void {
    const queue = this.queues[place];
    if (queue.busy) {
      queue.waiting = order;
      return;
    }
    queue.busy = true;
    const reuse = queue.spare;
    queue.spare = null;
    this.send({ kind: "paint", place, order, reuse });
  }

  parts(order: Order): Promise<Parts> {
    return new Promise((resolve) => {
      this.waitingForParts.push(resolve);
      this.send({ kind: "parts", order });
    });
  }

  close(): void {
    this.worker.terminate();
  }

  private send(request: Request): void {
    this.worker.postMessage(request, sentWith(request));
  }

  private receive(reply: Reply): void {
    if (reply.kind === "failed") this.onFailed(reply.message);
    else if (reply.kind === "parts") this.waitingForParts.shift()?.(reply.parts);
    else this.receivePicture(reply);
  }

  private receivePicture(reply: Drawn): void {
    const queue = this.queues[reply.place];
    queue.spare = queue.shown;
    queue.shown = reply.picture.frame;
    queue.busy = false;
    const next = queue.waiting;
    queue.waiting = null;
    if (next !== null) this.paint(reply.place, next);
    this.onDrawn(reply);
  }
}
