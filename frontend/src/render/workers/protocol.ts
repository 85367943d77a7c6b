import type { RowsByAge } from "../../layout/stacking/age_stack";
import type { FixedLayout, Lifetimes, Placement } from "../../layout/stacking/stacking";
import type { Blocks } from "../../layout/timeline/blocks";
import type { PackedTexts } from "../../payload/tables/text_column";
import type { FrameBuffer } from "../frame/raster";
import type { Painter } from "../painter/painter";
import type { PaintOrder, Picture, VectorParts } from "../painter/picture";

/** A worker's own global scope. The DOM types describe only the page's side. */
export interface WorkerScope<Request, Reply> {
  onmessage: ((event: MessageEvent<Request>) => void) | null;
  postMessage(reply: Reply, transfer?: Transferable[]): void;
}

/** Canvases of the page. Pictures of one canvas are drawn in order; a new order replaces one that still waits. */
export type CanvasName = "plot" | "map";

/** Messages from the page to the painter. Frame buffers are transferred without copying. */
export type PaintRequest =
  | { kind: "blocks"; blocks: Blocks; bands: Float64Array }
  | { kind: "ages"; ages: RowsByAge; clock: Float64Array | null; bands: Float64Array }
  | { kind: "highlighted"; highlighted: Uint8Array | null }
  | { kind: "paint"; place: CanvasName; order: PaintOrder; reuse: FrameBuffer | null; exact: boolean }
  | { kind: "parts"; order: PaintOrder };

export type PaintReply =
  | { kind: "picture"; place: CanvasName; order: PaintOrder; picture: Picture; milliseconds: number }
  | { kind: "parts"; parts: VectorParts }
  | { kind: "failed"; message: string };

/** Handle a request; return null if it needs no reply. */
export function handleRequest(painter: Painter, request: PaintRequest): PaintReply | null {
  switch (request.kind) {
    case "blocks":
      painter.setBlocks(request.blocks, request.bands);
      return null;
    case "ages":
      painter.setRowsByAge(request.ages, request.clock, request.bands);
      return null;
    case "highlighted":
      painter.setHighlighted(request.highlighted);
      return null;
    case "paint": {
      const began = performance.now();
      const picture = painter.paint(request.order, request.reuse, request.exact);
      const { place, order } = request;
      return { kind: "picture", place, order, picture, milliseconds: performance.now() - began };
    }
    case "parts":
      return { kind: "parts", parts: painter.paintParts(request.order) };
  }
}

/** Return the buffers to transfer to the worker with a request. */
export function requestTransfers(request: PaintRequest): Transferable[] {
  if (request.kind === "blocks") {
    const { start, end, bottom, top, color, row } = request.blocks;
    const columns = [start, end, bottom, top, color, row, request.bands];
    return columns.map(({ buffer }) => buffer as ArrayBuffer);
  }
  return request.kind === "paint" && request.reuse !== null ? frameTransfers(request.reuse) : [];
}

/** Return the buffers to transfer back with a reply. */
export function replyTransfers(reply: PaintReply): Transferable[] {
  if (reply.kind === "picture") return frameTransfers(reply.picture.frame);
  return reply.kind === "parts" ? [reply.parts.texture, reply.parts.ground].flatMap(frameTransfers) : [];
}

function frameTransfers({ pixels, ids }: FrameBuffer): Transferable[] {
  return [pixels.buffer, ids.buffer];
}

/** Messages to and from the worker that places rows: it replies with its progress, then with the placement. */
export interface PlacementRequest {
  layout: FixedLayout;
  lifetimes: Lifetimes;
}

export type PlacementReply =
  | { kind: "share"; share: number }
  | { kind: "placed"; placing: Placement }
  | { kind: "failed"; message: string };

/** Message to the worker that searches. */
export interface SearchRequest {
  typed: string;
  texts: readonly (string | PackedTexts)[];
}

export interface SearchReply {
  /** The texts that match, of those that are not packed. */
  matching: string[];
  /** 1 for each text that matches, of each of the packed texts. */
  found: Uint8Array[];
}
