import type { Ages } from "../layout/age_stack";
import type { Blocks } from "../layout/timeline_blocks";
import type { Order, Painter, Parts, Picture } from "./painter";
import type { Frame } from "./raster";

/** Pictures that are drawn one after the other in the same place; a new order replaces one that still waits. */
export type Place = "plot" | "map";

/** What the page asks of the painter. Frames travel to and fro without being copied. */
export type Request =
  | { kind: "blocks"; blocks: Blocks; bands: Float64Array }
  | { kind: "ages"; ages: Ages; clock: Float64Array | null; bands: Float64Array }
  | { kind: "lit"; lit: Uint8Array | null }
  | { kind: "paint"; place: Place; order: Order; reuse: Frame | null; exact: boolean }
  | { kind: "parts"; order: Order };

export type Reply =
  | { kind: "picture"; place: Place; order: Order; picture: Picture; milliseconds: number }
  | { kind: "parts"; parts: Parts }
  | { kind: "failed"; message: string };

/** Does what a request asks; null where it asks for no reply. */
export function answer(painter: Painter, request: Request): Reply | null {
  switch (request.kind) {
    case "blocks":
      painter.setBlocks(request.blocks, request.bands);
      return null;
    case "ages":
      painter.setAges(request.ages, request.clock, request.bands);
      return null;
    case "lit":
      painter.setLit(request.lit);
      return null;
    case "paint": {
      const began = performance.now();
      const picture = painter.paint(request.order, request.reuse, request.exact);
      const { place, order } = request;
      return { kind: "picture", place, order, picture, milliseconds: performance.now() - began };
    }
    case "parts":
      return { kind: "parts", parts: painter.parts(request.order) };
  }
}

/** The memory that goes over to the worker with a request. */
export function sentWith(request: Request): Transferable[] {
  switch (request.kind) {
    case "blocks": {
      const { start, end, bottom, top, role, row } = request.blocks;
      return [start, end, bottom, top, role, row, request.bands].map(
        (column) => column.buffer as ArrayBuffer,
      );
    }
    case "paint":
      return request.reuse === null ? [] : frameMemory(request.reuse);
    default:
      return [];
  }
}

/** The memory that comes back with a reply. */
export function returnedWith(reply: Reply): Transferable[] {
  switch (reply.kind) {
    case "picture":
      return frameMemory(reply.picture.frame);
    case "parts":
      return [...frameMemory(reply.parts.texture), ...frameMemory(reply.parts.ground)];
    default:
      return [];
  }
}

function frameMemory({ pixels, ids }: Frame): Transferable[] {
  return [pixels.buffer, ids.buffer];
}
