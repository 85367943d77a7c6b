import { RESERVED } from "../../base/colors";
import type { Span, TimelineBox, View } from "../axis";
import { type TimelineIndex, visitRuns } from "./blocks";

/**
 * Rectangles in pixels, x to the right and y down, clipped to the picture. Edges are fractional: a lifetime
 * or size below one pixel keeps the share that it covers.
 */
export interface Rects {
  length: number;
  x0: Float32Array;
  x1: Float32Array;
  y0: Float32Array;
  y1: Float32Array;
  color: Uint8Array;
  row: Int32Array;
}

export const RECT_COLUMNS = ["x0", "x1", "y0", "y1", "color", "row"] as const;

export function emptyRects(capacity: number): Rects {
  return {
    length: 0,
    x0: new Float32Array(capacity),
    x1: new Float32Array(capacity),
    y0: new Float32Array(capacity),
    y1: new Float32Array(capacity),
    color: new Uint8Array(capacity),
    row: new Int32Array(capacity),
  };
}

/** Append a rectangle and return its index. */
export function appendRect(rects: Rects): number {
  const { length, x0 } = rects;
  if (length === x0.length) {
    const grown = emptyRects(Math.max(length * 2, 1024));
    for (const column of RECT_COLUMNS) grown[column].set(rects[column]);
    Object.assign(rects, grown);
  }
  rects.length = length + 1;
  return length;
}

/**
 * Lay out the blocks that overlap the view as rectangles of a picture of width x height pixels, written into
 * `out`. With `least`, only lifetimes that may be at least this many pixels wide are included.
 */
export function layoutTimeline(
  index: TimelineIndex,
  view: View,
  width: number,
  height: number,
  out: Rects,
  least = 0,
): Rects {
  out.length = 0;
  const layoutRun = (from: number, to: number): void => {
    const { start, end, bottom, top, color, row } = index.blocks;
    const [left, right] = view.x;
    const [low, high] = view.y;
    const perPosition = width / (right - left);
    const perByte = height / (high - low);
    let count = out.length;
    for (let i = from; i < to; i++) {
      if (end[i] <= left || top[i] <= low || bottom[i] >= high) continue;
      out.x0[count] = start[i] <= left ? 0 : (start[i] - left) * perPosition;
      out.x1[count] = end[i] >= right ? width : (end[i] - left) * perPosition;
      out.y0[count] = top[i] >= high ? 0 : (high - top[i]) * perByte;
      out.y1[count] = bottom[i] <= low ? height : (high - bottom[i]) * perByte;
      out.color[count] = color[i];
      out.row[count] = row[i];
      count += 1;
    }
    out.length = count;
  };
  visitRuns(index, view.x, layoutRun, (least * (view.x[1] - view.x[0])) / width);
  return out;
}

/** Return the pixel of a value along x. */
export function xPixel(position: number, x: Span, width: number): number {
  return ((position - x[0]) / (x[1] - x[0])) * width;
}

/** Return the pixel of a byte along y; bytes grow upwards. */
export function yPixel(byte: number, y: Span, height: number): number {
  return ((y[1] - byte) / (y[1] - y[0])) * height;
}

/** Return a box in pixels, unclipped: [x0, y0, x1, y1]. */
export function boxInPixels(
  box: TimelineBox,
  view: View,
  width: number,
  height: number,
): [number, number, number, number] {
  return [
    xPixel(box.start, view.x, width),
    yPixel(box.top, view.y, height),
    xPixel(box.end, view.x, width),
    yPixel(box.bottom, view.y, height),
  ];
}

/**
 * Return the indices of at most `limit` rectangles of written memory with room for a label of `width` x `height`
 * pixels, largest areas first.
 */
export function labelCandidates(rects: Rects, width: number, height: number, limit: number): number[] {
  const found: number[] = [];
  for (let i = 0; i < rects.length; i++)
    if (
      rects.color[i] < RESERVED &&
      rects.x1[i] - rects.x0[i] >= width &&
      rects.y1[i] - rects.y0[i] >= height
    )
      found.push(i);
  const area = (i: number): number => (rects.x1[i] - rects.x0[i]) * (rects.y1[i] - rects.y0[i]);
  if (found.length > limit) found.sort((a, b) => area(b) - area(a));
  return found.slice(0, limit);
}
