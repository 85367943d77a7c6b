import type { View } from "../../layout/axis";
import type { Rects } from "../../layout/timeline/rects";
import { colorIndex, type Palette, SHADES } from "./palette";
import { FULL_WEIGHT, Texture } from "./texture";

/** A picture: pixels as 0xAABBGGRR, and the row number + 1 of the block at each pixel, 0 for none. */
export interface FrameBuffer {
  width: number;
  height: number;
  pixels: Uint32Array<ArrayBuffer>;
  ids: Uint32Array<ArrayBuffer>;
  /** The source of the last drawing; null before the first. */
  source: FrameSource | null;
}

/** View, edition of blocks and highlights, and background of a drawing. */
export interface FrameSource {
  view: View;
  edition: number;
  ground: number;
}

export function emptyFrameBuffer(width: number, height: number): FrameBuffer {
  const size = width * height;
  return { width, height, pixels: new Uint32Array(size), ids: new Uint32Array(size), source: null };
}

/**
 * Blocks at least this large in both directions have an edge; smaller ones would be all edge. A block that continues
 * beyond the top or right of the picture has no edge there, because moving the picture would move the edge along.
 */
const MIN_EDGED = 4;

/**
 * Limit of pixels painted over each other, in pictures. Blocks of one region overlap only where they share memory, so
 * valid recordings paint a few pictures. Beyond the limit, only the first row of pixels of a block is painted.
 */
const MAX_OVERDRAW = 64;

/** Runs this short are cheaper to walk than to test. */
const SHORT_RUN = 8;

/** Draws rectangles of at least one pixel directly and smaller ones as texture. Reusable; keeps only scratch memory. */
export class Raster {
  private readonly texture = new Texture();
  private budget = 0;

  /**
   * Redraw all of `frame`. `bands` are tops and bottoms of the regions in pixels, in pairs. `highlighted`, if
   * given, contains 1 for each row to draw in full color; the others are dimmed.
   */
  draw(
    frame: FrameBuffer,
    rects: Rects,
    bands: Float64Array,
    palette: Palette,
    highlighted: Uint8Array | null,
  ): void {
    const { width, height, pixels, ids } = frame;
    pixels.fill(palette.background);
    ids.fill(0);
    paintBands(frame, bands, palette);
    this.texture.resize(width, height, rects.length);
    this.budget = MAX_OVERDRAW * width * height;
    const { x0, x1, y0, y1, color, row } = rects;
    for (let i = 0; i < rects.length; i++) {
      const dim = highlighted !== null && highlighted[row[i]] !== 1;
      const across = x1[i] - x0[i];
      const down = y1[i] - y0[i];
      const left = across < 1 ? middlePixel(x0[i], x1[i], width) : roundPositive(x0[i]);
      const right = across < 1 ? left + 1 : roundPositive(x1[i]);
      const top = down < 1 ? middlePixel(y0[i], y1[i], height) : roundPositive(y0[i]);
      const bottom = down < 1 ? top + 1 : roundPositive(y1[i]);
      const paint = colorIndex(color[i], row[i] % SHADES, dim);
      if (across >= 1 && down >= 1) {
        this.fill(frame, left, top, right, bottom, palette.fill[paint], palette.edge[paint], row[i] + 1);
        continue;
      }
      const weight = Math.max(1, roundPositive(FULL_WEIGHT * Math.min(across, 1) * Math.min(down, 1)));
      if (bottom - top === 1) this.texture.addRun(left, right, top, weight, paint);
      else this.texture.addColumn(left, top, bottom, weight, paint);
      this.claim(frame, left, top, right, bottom, row[i] + 1);
    }
    this.texture.blendInto(pixels, palette.fill);
  }

  private fill(
    { width, pixels, ids }: FrameBuffer,
    left: number,
    top: number,
    right: number,
    bottom: number,
    color: number,
    edge: number,
    id: number,
  ): void {
    const end = this.budget > 0 ? bottom : top + 1;
    this.budget -= (right - left) * (bottom - top);
    const edged = right - left >= MIN_EDGED && bottom - top >= MIN_EDGED;
    for (let y = top; y < end; y++) {
      const from = y * width + left;
      const to = y * width + right;
      fillRun(pixels, edged && y === top && y > 0 ? edge : color, from, to);
      fillRun(ids, id, from, to);
      if (edged && right < width) pixels[to - 1] = edge;
    }
  }

  /** Assign the free pixels of a small block to it. Larger blocks and earlier small blocks keep their pixels. */
  private claim(
    { width, ids }: FrameBuffer,
    left: number,
    top: number,
    right: number,
    bottom: number,
    id: number,
  ): void {
    for (let y = top; y < bottom; y++) {
      const from = y * width + left;
      const to = y * width + right;
      if (to - from <= SHORT_RUN) {
        for (let i = from; i < to; i++) ids[i] |= id & whereFree(ids[i]);
        continue;
      }
      // If both ends and the middle of a long thin block are taken, walking its whole length gains little.
      if (ids[from] !== 0 && ids[to - 1] !== 0 && ids[(from + to) >> 1] !== 0) continue;
      if ((this.budget -= to - from) < 0) return;
      for (let i = from; i < to; i++) ids[i] |= id & whereFree(ids[i]);
    }
  }
}

/**
 * Return all bits set for id 0, and none for a row number + 1. Ids of small blocks are scattered over memory,
 * and a mispredicted branch would wait for memory.
 */
function whereFree(id: number): number {
  return ((id | 0) - 1) >> 31;
}

/** Round a non-negative number in a third of the time of Math.round. */
function roundPositive(edge: number): number {
  return (edge + 0.5) | 0;
}

/** Return the pixel that contains the middle of an interval shorter than one pixel. */
function middlePixel(from: number, to: number, limit: number): number {
  return Math.min(((from + to) / 2) | 0, limit - 1);
}

/** For a few elements, calling TypedArray.fill costs more than it saves. */
function fillRun(array: Uint32Array, value: number, from: number, to: number): void {
  if (to - from > 32) array.fill(value, from, to);
  else for (let i = from; i < to; i++) array[i] = value;
}

function paintBands({ width, height, pixels }: FrameBuffer, bands: Float64Array, palette: Palette): void {
  for (let i = 0; i < bands.length; i += 2) {
    const top = Math.max(0, Math.round(bands[i]));
    const bottom = Math.min(height, Math.round(bands[i + 1]));
    if (bottom <= top) continue;
    pixels.fill(palette.region, top * width, bottom * width);
    if (bottom - top >= MIN_EDGED && bands[i] >= 0)
      pixels.fill(palette.regionEdge, top * width, (top + 1) * width);
  }
}

/** Maximum distance of the pointer from a block in pixels: a block of one pixel is hard to hit. */
const REACH = 3;

/** Return the row of the block at a pixel, or of the nearest block within reach; -1 if there is none. */
export function rowAt({ width, height, ids }: FrameBuffer, x: number, y: number): number {
  const column = Math.floor(x);
  const line = Math.floor(y);
  if (column < 0 || line < 0 || column >= width || line >= height) return -1;
  let found = 0;
  let nearest = Infinity;
  for (let i = Math.max(line - REACH, 0); i <= Math.min(line + REACH, height - 1); i++)
    for (let j = Math.max(column - REACH, 0); j <= Math.min(column + REACH, width - 1); j++) {
      const id = ids[i * width + j];
      const distance = (i - line) ** 2 + (j - column) ** 2;
      if (id !== 0 && distance < nearest) {
        found = id;
        nearest = distance;
      }
    }
  return found - 1;
}
