import workerUrl from "./paint_worker?worker&url";
import type { FrameBuffer } from "../frame/raster";
import type { PaintOrder, VectorParts } from "../painter/picture";
import { type CanvasName, type PaintReply, type PaintRequest, requestTransfers } from "./protocol";
import { prepareWorker, startWorker } from "./workers";

export type DrawnPicture = Extract<PaintReply, { kind: "picture" }>;

/** Orders of one canvas: at most one in progress and one waiting. Newer orders replace the waiting one. */
interface PaintQueue {
  busy: boolean;
  waiting: PaintOrder | null;
  /** A frame buffer that the page no longer shows. */
  spare: FrameBuffer | null;
  /** The last order, and the timer that draws it exactly once the view stops moving. */
  lastOrder: PaintOrder | null;
  settling: number;
}

/** Start the painter's worker for the next renderer. */
export function prepareRenderer(): void {
  prepareWorker(workerUrl);
}

const newQueue = (): PaintQueue => ({
  busy: false,
  waiting: null,
  spare: null,
  lastOrder: null,
  settling: 0,
});

/** A movement ends after this many milliseconds. A whole picture of a million blocks takes about as long. */
const SETTLE_MS = 80;

/** The page's side of the painter. Pictures of a canvas arrive in order; of waiting orders, only the last is drawn. */
export class TimelineRenderer {
  /** The last picture of each canvas: the page shows it and looks up the rows at its pixels. */
  readonly drawn: Record<CanvasName, DrawnPicture | null> = { plot: null, map: null };
  private readonly queues: Record<CanvasName, PaintQueue> = { plot: newQueue(), map: newQueue() };
  private readonly listeners: Partial<Record<CanvasName, (drawn: DrawnPicture) => void>> = {};
  private readonly waitingForParts: ((parts: VectorParts) => void)[] = [];
  private readonly worker = startWorker(workerUrl);

  constructor(private readonly onFailed: (message: string) => void) {
    this.worker.onmessage = ({ data }: MessageEvent<PaintReply>) => this.receive(data);
    this.worker.onerror = (event) => onFailed(event.message || "its worker could not be started");
  }

  /** Call `listener` with the last picture of a canvas and with each new one. It replaces the previous listener. */
  listen(place: CanvasName, listener: (drawn: DrawnPicture) => void): void {
    this.listeners[place] = listener;
    // The worker can finish before the page's effects run.
    const drawn = this.drawn[place];
    if (drawn !== null) listener(drawn);
  }

  paint(place: CanvasName, order: PaintOrder): void {
    const queue = this.queues[place];
    window.clearTimeout(queue.settling);
    queue.lastOrder = order;
    if (queue.busy) queue.waiting = order;
    else this.order(place, order, false);
  }

  private order(place: CanvasName, order: PaintOrder, exact: boolean): void {
    const queue = this.queues[place];
    queue.busy = true;
    const reuse = queue.spare;
    queue.spare = null;
    this.send({ kind: "paint", place, order, reuse, exact });
  }

  /** Return whether the last picture of a canvas is exact and up to date. */
  isAtRest(place: CanvasName): boolean {
    return !this.queues[place].busy && this.drawn[place]?.picture.rough === false;
  }

  parts(order: PaintOrder): Promise<VectorParts> {
    return new Promise((resolve) => {
      this.waitingForParts.push(resolve);
      this.send({ kind: "parts", order });
    });
  }

  close(): void {
    for (const { settling } of Object.values(this.queues)) window.clearTimeout(settling);
    this.worker.terminate();
  }

  /** The memory of blocks and their bands is transferred; that of rows by age stays with the page. */
  send(request: PaintRequest): void {
    this.worker.postMessage(request, requestTransfers(request));
  }

  private receive(reply: PaintReply): void {
    if (reply.kind === "failed") this.onFailed(reply.message);
    else if (reply.kind === "parts") this.waitingForParts.shift()?.(reply.parts);
    else this.receivePicture(reply);
  }

  private receivePicture(reply: DrawnPicture): void {
    const { place, picture } = reply;
    const queue = this.queues[place];
    queue.spare = this.drawn[place]?.picture.frame ?? null;
    this.drawn[place] = reply;
    queue.busy = false;
    const next = queue.waiting;
    queue.waiting = null;
    if (next !== null) this.order(place, next, false);
    else if (picture.rough) queue.settling = window.setTimeout(() => this.settle(place), SETTLE_MS);
    this.listeners[place]?.(reply);
  }

  private settle(place: CanvasName): void {
    const { lastOrder, busy } = this.queues[place];
    if (lastOrder !== null && !busy) this.order(place, lastOrder, true);
  }
}
