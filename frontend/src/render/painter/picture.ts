import type { View } from "../../layout/axis/span";
import { emptyRects, type Rects } from "../../layout/timeline/rects";
import type { Palette } from "../frame/palette";
import type { FrameBuffer } from "../frame/raster";

/** What to draw a picture of: the view, the picture's size in pixels, and the least room for a label in it. */
export interface PaintOrder {
  view: View;
  width: number;
  height: number;
  palette: Palette;
  labelWidth: number;
  labelHeight: number;
}

/** Rectangles with room for a label: row numbers, and left, top, right, bottom of each in pixels. */
export interface Labels {
  rows: Int32Array;
  edges: Float32Array;
}

export interface Picture {
  frame: FrameBuffer;
  labels: Labels;
  /** What it shows: the view that was ordered, or where an earlier picture was moved, that to the nearest pixel. */
  view: View;
  /** An earlier picture that was moved or scaled, or one in fewer columns: an exact one is to be ordered later. */
  rough: boolean;
  /** Number of blocks that were drawn for it. */
  blocks: number;
}

/**
 * The parts of a picture for vector graphics: the blocks large enough to be shapes; all others as a picture that goes
 * under them; and the ground, the same picture without any block.
 */
export interface VectorParts {
  shapes: Rects;
  texture: FrameBuffer;
  ground: FrameBuffer;
}

/** Whether the place of a block's label shows the block, and not one in the same memory that was drawn after it. */
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
