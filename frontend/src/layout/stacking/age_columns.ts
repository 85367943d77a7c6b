import { lowerBound } from "../../base/sort";
import type { Span, View } from "../axis";
import { appendRect, emptyRects, type Rects } from "../timeline/rects";
import type { AgeStack } from "./age_stack";

/**
 * Limit of live rows to visit for one picture, summed over its columns; each takes about 50 ns, including the
 * rectangle that it may create. Beyond it, columns become several pixels wide.
 */
const MAX_STEPS = 16_000_000;
/** The same limit while the picture moves at 60 frames per second. */
const MAX_ROUGH_STEPS = 60_000;

/** Limit of highlighted rows that are drawn although they cover no pixel's middle. */
const MAX_THIN = 100_000;

/** A picture of width x height pixels. */
export interface LayoutRequest {
  view: View;
  width: number;
  height: number;
  /** Draw fewer columns if the picture would take long. */
  rough?: boolean;
  /** Include only rectangles at least this many pixels wide. */
  minWidth?: number;
  /** As in Painter.setHighlighted. */
  highlighted?: Uint8Array | null;
}

/**
 * Lay out an age stack as rectangles of a picture, written into `out`.
 *
 * Each column of pixels shows the position with the most bytes in use among those in the column, so that no
 * peak is lost if a pixel contains many events. Edges are whole pixels, and a pixel belongs to the row that
 * covers its middle. Rows thinner than a pixel are visible only where they cover a middle, or where they are
 * highlighted and others are not. `clock` as in Axis.
 */
export function layoutAgeStack(
  stack: AgeStack,
  clock: Float64Array | null,
  { view, width, height, rough = false, minWidth = 0, highlighted = null }: LayoutRequest,
  out: Rects,
): Rects {
  const { row, end, bytes, color } = stack.rows;
  const [low, high] = view.y;
  const perByte = height / (high - low);
  // Rows live in the last column, oldest first: rank, bottom, and first column at that bottom.
  const live = new Int32Array(stack.maxLive);
  const bottom = new Float64Array(stack.maxLive);
  const since = new Int32Array(stack.maxLive);
  let count = 0;
  let born = 0;
  const thin = emptyRects(0);
  out.length = 0;

  const close = (i: number, column: number): void => {
    if (column - since[i] < minWidth || column <= since[i]) return;
    const rank = live[i];
    const top = (high - bottom[i] - bytes[rank]) * perByte;
    const foot = (high - bottom[i]) * perByte;
    const y0 = top <= 0 ? 0 : Math.round(top);
    const y1 = foot >= height ? height : Math.round(foot);
    if (y1 > y0) add(out, since[i], column, y0, y1, color[rank], row[rank]);
    else if (
      highlighted !== null &&
      highlighted[row[rank]] === 1 &&
      top >= 0 &&
      top < height &&
      thin.length < MAX_THIN
    )
      add(thin, since[i], column, Math.floor(top), Math.floor(top) + 1, color[rank], row[rank]);
  };
  const put = (rank: number, at: number, column: number): number => {
    live[count] = rank;
    bottom[count] = at;
    since[count++] = column;
    return at + bytes[rank];
  };
  /** Advance to the position that a column shows. */
  const go = (moment: number, column: number): void => {
    let top = 0;
    let kept = 0;
    for (let i = 0; i < count; i++) {
      const rank = live[i];
      const stays = end[rank] > moment;
      if (!stays || bottom[i] !== top) close(i, column);
      if (!stays) continue;
      since[kept] = bottom[i] === top ? since[i] : column;
      live[kept] = rank;
      bottom[kept++] = top;
      top += bytes[rank];
    }
    count = kept;
    const until = stack.allocatedBy(moment);
    for (; born < until; born++) if (end[born] > moment) top = put(born, top, column);
  };

  const steps = rough ? MAX_ROUGH_STEPS : MAX_STEPS;
  const wide = Math.max(1, Math.ceil((width * stack.maxLive) / steps));
  let shown = -1;
  visitFullestPositions(stack, clock, view.x, width, wide, (moment, column) => {
    if (shown < 0) {
      let top = 0;
      for (const rank of stack.liveAt(moment)) top = put(rank, top, column);
      born = stack.allocatedBy(moment);
    } else if (moment !== shown) go(moment, column);
    shown = moment;
  });
  for (let i = 0; i < count; i++) close(i, width);
  // Highlighted thin rows come last, so that they are drawn over the others.
  const { length, x0, x1, y0, y1 } = thin;
  for (let i = 0; i < length; i++) add(out, x0[i], x1[i], y0[i], y1[i], thin.color[i], thin.row[i]);
  return out;
}

function add(rects: Rects, x0: number, x1: number, y0: number, y1: number, color: number, row: number): void {
  const to = appendRect(rects);
  rects.x0[to] = x0;
  rects.x1[to] = x1;
  rects.y0[to] = y0;
  rects.y1[to] = y1;
  rects.color[to] = color;
  rects.row[to] = row;
}

/** Call `visit` for each column, `wide` pixels apart, with the position in it that has the most bytes in use. */
function visitFullestPositions(
  stack: AgeStack,
  clock: Float64Array | null,
  [left, right]: Span,
  width: number,
  wide: number,
  visit: (moment: number, column: number) => void,
): void {
  const last = stack.rows.positions - 1;
  if (last < 0) return;
  const valueAt = (column: number): number =>
    left + ((right - left) * Math.min(Math.max(column, 0), width)) / width;
  // Columns keep their place while a picture moves by whole pixels.
  const phase = Math.round((left * width) / (right - left)) % wide;
  for (let column = -phase; column < width; column += wide) {
    const first = Math.min(firstPositionAt(clock, valueAt(column)), last);
    const end = Math.min(lastPositionBefore(clock, valueAt(column + wide)), last);
    visit(stack.fullestBetween(first, Math.max(first, end)), Math.max(column, 0));
  }
}

/**
 * Return the position at a value. An event that ended before the value does not count, but an event of zero
 * length at the value does.
 */
function firstPositionAt(clock: Float64Array | null, value: number): number {
  if (clock === null) return Math.max(Math.floor(value), 0);
  const next = lowerBound(clock, value, 0, clock.length);
  return clock[next] === value ? next : Math.max(next - 1, 0);
}

/** Return the last position that starts before a value. */
function lastPositionBefore(clock: Float64Array | null, value: number): number {
  return (clock === null ? Math.ceil(value) : lowerBound(clock, value, 0, clock.length)) - 1;
}
