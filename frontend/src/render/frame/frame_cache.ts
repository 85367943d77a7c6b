import type { Span, View } from "../../layout/axis";
import { emptyFrameBuffer, type FrameBuffer, type FrameSource } from "./raster";

/** The move of a picture by whole pixels: the view that it then shows, and the offset. */
export interface Shift {
  /** Pixel (x, y) shows what (x + across, y + down) showed. */
  across: number;
  down: number;
  view: View;
}

/** A part of a picture, in pixels. */
interface Strip {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** Two windows have the same scale if their far ends differ by less than this many pixels. */
const SAME_SCALE = 0.01;

/**
 * Return the move from one view to another, to the nearest pixel; null if the scale differs or most of the
 * picture changes.
 */
export function findShift(view: View, wanted: View, width: number, height: number): Shift | null {
  const [perX, perY] = [(view.x[1] - view.x[0]) / width, (view.y[1] - view.y[0]) / height];
  const grownX = wanted.x[1] - wanted.x[0] - (view.x[1] - view.x[0]);
  const grownY = wanted.y[1] - wanted.y[0] - (view.y[1] - view.y[0]);
  if (Math.abs(grownX / perX) > SAME_SCALE || Math.abs(grownY / perY) > SAME_SCALE) return null;
  const across = Math.round((wanted.x[0] - view.x[0]) / perX);
  const down = Math.round((view.y[1] - wanted.y[1]) / perY);
  if (Math.abs(across) > width / 2 || Math.abs(down) > height / 2) return null;
  const [alongX, alongY] = [across * perX, down * perY];
  return {
    across,
    down,
    view: { x: [view.x[0] + alongX, view.x[1] + alongX], y: [view.y[0] - alongY, view.y[1] - alongY] },
  };
}

/** Return the parts of a moved picture that must be drawn: columns at one side, rows at the top or bottom. */
export function exposedStrips({ across, down }: Shift, width: number, height: number): Strip[] {
  const strips: Strip[] = [];
  if (across !== 0)
    strips.push({ left: across > 0 ? width - across : 0, top: 0, width: Math.abs(across), height });
  if (down !== 0) strips.push({ left: 0, top: down > 0 ? height - down : 0, width, height: Math.abs(down) });
  return strips;
}

/** Move the pixels. The exposed strips contain leftover pixels until they are drawn. */
export function moveFrame({ width, pixels, ids }: FrameBuffer, { across, down }: Shift): void {
  const by = down * width + across;
  for (const plane of [pixels, ids])
    plane.copyWithin(Math.max(-by, 0), Math.max(by, 0), plane.length - Math.max(-by, 0));
}

/** Return the window that a strip of a picture shows. */
export function stripView(strip: Strip, { x, y }: View, width: number, height: number): View {
  const [perX, perY] = [(x[1] - x[0]) / width, (y[1] - y[0]) / height];
  return {
    x: [x[0] + strip.left * perX, x[0] + (strip.left + strip.width) * perX],
    y: [y[1] - (strip.top + strip.height) * perY, y[1] - strip.top * perY],
  };
}

/** Copy the picture of a strip into its place. */
export function putStrip(frame: FrameBuffer, strip: Strip, drawn: FrameBuffer): void {
  for (let row = 0; row < strip.height; row++) {
    const from = row * strip.width;
    const to = (strip.top + row) * frame.width + strip.left;
    frame.pixels.set(drawn.pixels.subarray(from, from + strip.width), to);
    frame.ids.set(drawn.ids.subarray(from, from + strip.width), to);
  }
}

/** A cached picture may be enlarged or reduced by up to this factor. */
const MAX_ENLARGED = 4;
const MIN_REDUCED = 1 / 2;

/** A cached picture and what it shows. */
interface CachedFrame {
  frame: FrameBuffer;
  shows: FrameSource;
}

/**
 * Earlier pictures of one size: the last one drawn, and the one with the widest view. While zooming, scaled
 * copies replace pictures that take longer to draw than a screen refresh.
 */
export class ZoomCache {
  private last: CachedFrame | null = null;
  private widest: CachedFrame | null = null;

  /** Copy a newly drawn picture. */
  keep({ width, height, pixels, ids }: FrameBuffer, shows: FrameSource): void {
    const { last, widest } = this;
    const reuse = last !== widest && last?.frame.width === width && last.frame.height === height;
    const frame = reuse ? last.frame : emptyFrameBuffer(width, height);
    frame.pixels.set(pixels);
    frame.ids.set(ids);
    this.last = { frame, shows };
    if (!isReusable(widest, shows, frame) || covers(shows.view, widest.shows.view)) this.widest = this.last;
  }

  /** Return whether the cache can replace a picture of `shows` in `frame`. */
  canReplace(frame: FrameBuffer, shows: FrameSource): boolean {
    return isReusable(this.last, shows, frame) && isNear(this.last.shows.view, shows.view);
  }

  /** Show a view in `frame`. `drawGround` is called first if the cached pictures do not cover the view. */
  show(frame: FrameBuffer, view: View, drawGround: () => void): void {
    const { last, widest } = this;
    if (last === null || widest === null) return;
    if (!covers(last.shows.view, view)) {
      if (!covers(widest.shows.view, view)) drawGround();
      rescale(widest, frame, view);
    }
    if (last !== widest || covers(last.shows.view, view)) rescale(last, frame, view);
  }
}

/** Return whether a picture has this size, and the same blocks, highlights and background. */
function isReusable(
  kept: CachedFrame | null,
  shows: FrameSource,
  { width, height }: FrameBuffer,
): kept is CachedFrame {
  if (kept?.frame.width !== width || kept.frame.height !== height) return false;
  return kept.shows.edition === shows.edition && kept.shows.ground === shows.ground;
}

function covers(one: View, other: View): boolean {
  const reaches = (of: Span, to: Span): boolean => of[0] <= to[0] && of[1] >= to[1];
  return reaches(one.x, other.x) && reaches(one.y, other.y);
}

/** Return whether the picture of one view shows enough of another one. */
function isNear(of: View, wanted: View): boolean {
  const near = (one: Span, other: Span): boolean => {
    const enlarged = (one[1] - one[0]) / (other[1] - other[0]);
    const middle = (other[0] + other[1]) / 2;
    return enlarged <= MAX_ENLARGED && enlarged >= MIN_REDUCED && one[0] < middle && middle < one[1];
  };
  return near(of.x, wanted.x) && near(of.y, wanted.y);
}

/**
 * Copy to each pixel of `to`, which shows `view`, the pixel of `from` that contains its middle. Pixels
 * without a source stay unchanged.
 */
function rescale({ frame: from, shows }: CachedFrame, to: FrameBuffer, view: View): void {
  const columns = sourcePixels(shows.view.x, view.x, to.width);
  const rows = sourcePixels(flip(shows.view.y), flip(view.y), to.height);
  copyScaled(from.pixels, to.pixels, columns, rows);
  copyScaled(from.ids, to.ids, columns, rows);
}

/** `columns` and `rows` contain the source of each pixel. Pixels without a source, -1, are at the ends. */
function copyScaled(from: Uint32Array, to: Uint32Array, columns: Int32Array, rows: Int32Array): void {
  const width = columns.length;
  let [left, right] = [0, width];
  while (left < right && columns[left] < 0) left += 1;
  while (left < right && columns[right - 1] < 0) right -= 1;
  for (let y = 0; y < rows.length; y++) {
    if (rows[y] < 0) continue;
    const row = y * width;
    const source = rows[y] * width;
    // In an enlarged picture, a row often repeats the one above.
    if (y > 0 && rows[y] === rows[y - 1]) to.copyWithin(row + left, row - width + left, row - width + right);
    else for (let x = left; x < right; x++) to[row + x] = from[source + columns[x]];
  }
}

/**
 * Return for each of `count` pixels over the span `wanted` the pixel over the span `of` that contains its
 * middle, or -1.
 */
function sourcePixels(of: Span, wanted: Span, count: number): Int32Array {
  const scale = (wanted[1] - wanted[0]) / (of[1] - of[0]);
  const first = ((wanted[0] - of[0]) / (of[1] - of[0])) * count;
  const found = new Int32Array(count);
  for (let pixel = 0; pixel < count; pixel++) {
    const source = Math.floor(first + (pixel + 0.5) * scale);
    found[pixel] = source >= 0 && source < count ? source : -1;
  }
  return found;
}

/** Bytes grow upwards, rows downwards. */
function flip([low, high]: Span): Span {
  return [-high, -low];
}
