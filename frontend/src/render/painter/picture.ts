import type { View } from "../../layout/axis/view";
import { emptyRects, type Rects } from "../../layout/timeline/rects";
import type { Palette } from "../frame/palette";
import type { FrameBuffer } from "../frame/raster";

/** A request for a picture: the view, the size in pixels, and the minimum room for a label. */
export interface PaintOrder {
  view: View;
  width: number;
  height: number;
  palette: Palette;
  labelWidth: number;
  labelHeight: number;
}

/** Rectangles with room for a label: row numbers, and left, top, right, bottom in pixels. */
export interface Labels {
  rows: Int32Array;
  edges: Float32Array;
}

export interface Picture {
  frame: FrameBuffer;
  labels: Labels;
  /**
   * The view that the picture shows: the requested view, or for a moved picture, the nearest one in whole pixels.
   */
  view: View;
  /** Whether the picture was moved, scaled or drawn in fewer columns. An exact one should follow. */
  rough: boolean;
  /** Number of blocks drawn. */
  blocks: number;
}

/**
 * A picture in parts for vector graphics: blocks large enough to be shapes, a texture of all others below
 * them, and the ground without blocks.
 */
export interface VectorParts {
  shapes: Rects;
  texture: FrameBuffer;
  ground: FrameBuffer;
}

/** Return whether a label's place shows its block, not one drawn later in the same memory. */
export function isLabelVisible(
  rects: Rects,
  i: number,
  labelWidth: number,
  { width, ids }: FrameBuffer,
): boolean {
  const x = Math.floor(rects.x0[i] + labelWidth / 2);
  const y = Math.floor((rects.y0[i] + rects.y1[i]) / 2);
  return ids[y * width + x] === rects.row[i] + 1;
}

export function pickLabels(rects: Rects, chosen: number[]): Labels {
  const rows = new Int32Array(chosen.length);
  const edges = new Float32Array(chosen.length * 4);
  chosen.forEach((i, label) => {
    rows[label] = rects.row[i];
    edges.set([rects.x0[i], rects.y0[i], rects.x1[i], rects.y1[i]], label * 4);
  });
  return { rows, edges };
}

export function selectRects(rects: Rects, keep: (i: number) => boolean): Rects {
  const kept = emptyRects(rects.length);
  for (let i = 0; i < rects.length; i++) {
    if (!keep(i)) continue;
    const to = kept.length++;
    kept.x0[to] = rects.x0[i];
    kept.x1[to] = rects.x1[i];
    kept.y0[to] = rects.y0[i];
    kept.y1[to] = rects.y1[i];
    kept.color[to] = rects.color[i];
    kept.row[to] = rects.row[i];
  }
  return kept;
}
