import type { Ages } from "../layout/age_stack";
import type { Blocks } from "../layout/timeline_blocks";
import type { Order, Parts } from "./painter";
import { type Place, type Reply, type Request, sentWith } from "./protocol";
import type { Frame } from "./raster";
import { startWorker } from "./start_worker";
import workerUrl from "./worker?worker&url";

export type Drawn = Extract<Reply, { kind: "picture" }>;

/** One place's orders: at most one under way and one that waits, which newer ones replace. */
interface Queue {
  busy: boolean;
  waiting: Order | null;
  /** A frame that the page has done with. */
  spare: Frame | null;
  /** The order last asked for, and the timer that has it drawn exactly once nothing moves any more. */
  asked: Order | null;
  settling: number;
}

const newQueue = (): Queue => ({ busy: false, waiting: null, spare: null, asked: null, settling: 0 });

/** A pause this long, in milliseconds, ends a movement: a whole picture of a million blocks takes about as long. */
const SETTLED = 80;

/** The page's side of the painter. Pictures of a place arrive in order; of orders that wait only the last is drawn. */
export class TimelineRenderer {
  /** The last picture of each place: the page shows it, and looks up in it whose a pixel is. */
  readonly drawn: Record<Place, Drawn | null> = { plot: null, map: null };
  private readonly queues: Record<Place, Queue> = { plot: newQueue(), map: newQueue() };
  private readonly listeners: Partial<Record<Place, (drawn: Drawn) => void>> = {};
  private readonly waitingForParts: ((parts: Parts) => void)[] = [];
  private readonly worker = startWorker(workerUrl);

  constructor(private readonly onFailed: (message: string) => void) {
    this.worker.onmessage = ({ data }: MessageEvent<Reply>) => this.receive(data);
    this.worker.onerror = (event) => onFailed(event.message || "its worker could not be started");
  }

  /** Calls back with the last picture of a place and each one from now on, in place of who was called before. */
  listen(place: Place, listener: (drawn: Drawn) => void): void {
    this.listeners[place] = listener;
    // The worker can be sooner than the page, whose effects wait for the screen.
    const drawn = this.drawn[place];
    if (drawn !== null) listener(drawn);
  }

  /** Takes over the memory of `blocks` and `bands`. */
  setBlocks(blocks: Blocks, bands: Float64Array): void {
    this.send({ kind: "blocks", blocks, bands });
  }

  /** As Painter's; the page keeps the memory. */
  setAges(ages: Ages, clock: Float64Array | null, bands: Float64Array): void {
    this.send({ kind: "ages", ages, clock, bands });
  }

  setLit(lit: Uint8Array | null): void {
    this.send({ kind: "lit", lit });
  }

  paint(place: Place, order: Order): void {
    const queue = this.queues[place];
    window.clearTimeout(queue.settling);
    queue.asked = order;
    if (queue.busy) queue.waiting = order;
    else this.order(place, order, false);
  }

  private order(place: Place, order: Order, exact: boolean): void {
    const queue = this.queues[place];
    queue.busy = true;
    const reuse = queue.spare;
    queue.spare = null;
    this.send({ kind: "paint", place, order, reuse, exact });
  }

  /** Whether a place's last picture is what was last asked for, drawn exactly. */
  isAtRest(place: Place): boolean {
    return !this.queues[place].busy && this.drawn[place]?.picture.rough === false;
  }

  parts(order: Order): Promise<Parts> {
    return new Promise((resolve) => {
      this.waitingForParts.push(resolve);
      this.send({ kind: "parts", order });
    });
  }

  close(): void {
    for (const { settling } of Object.values(this.queues)) window.clearTimeout(settling);
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
    const { place, picture } = reply;
    const queue = this.queues[place];
    queue.spare = this.drawn[place]?.picture.frame ?? null;
    this.drawn[place] = reply;
    queue.busy = false;
    const next = queue.waiting;
    queue.waiting = null;
    if (next !== null) this.order(place, next, false);
    else if (picture.rough) queue.settling = window.setTimeout(() => this.settle(place), SETTLED);
    this.listeners[place]?.(reply);
  }

  private settle(place: Place): void {
    const { asked, busy } = this.queues[place];
    if (asked !== null && !busy) this.order(place, asked, true);
  }
}
