import type { AgeStack } from "./age_stack";
import { type Rects, roomFor } from "./timeline";
import type { Span, View } from "./timeline_blocks";
import { lowerBound } from "./timeline_index";

/**
 * Steps over live rows that one picture may take, some 3 ns each. Where a thousand columns of the most that were ever
 * live would take more, a column is made several pixels wide.
 */
const MOST_STEPS = 16_000_000;

/**
 * A stack by age as rectangles of a picture of width x height pixels, written into `out`; where `least` is given, only
 * those at least so many pixels wide.
 *
 * Each column of pixels shows one moment: of those that lie in it the one with the most in use, so that no peak is
 * lost where a pixel holds many events. Edges are whole pixels, and a pixel is the row's that covers its middle: what
 * is thinner than a pixel shows where it does that, and the picture never holds more rectangles than pixels. `clock`
 * as in Axis.
 */
export function layoutAges(
  stack: AgeStack,
  clock: Float64Array | null,
  view: View,
  width: number,
  height: number,
  out: Rects,
  least = 0,
): Rects {
  const { row, end, bytes, colour } = stack.ages;
  const [low, high] = view.y;
  const perByte = height / (high - low);
  // What is live in the last column, oldest first: its rank, its bottom, and the column from which on it lies there.
  const live = new Int32Array(stack.mostLive);
  const bottom = new Float64Array(stack.mostLive);
  const since = new Int32Array(stack.mostLive);
  let count = 0;
  let born = 0;
  out.length = 0;

  const close = (i: number, column: number): void => {
    if (column - since[i] < least || column <= since[i]) return;
    const rank = live[i];
    const top = (high - bottom[i] - bytes[rank]) * perByte;
    const foot = (high - bottom[i]) * perByte;
    const y0 = top <= 0 ? 0 : Math.round(top);
    const y1 = foot >= height ? height : Math.round(foot);
    if (y1 <= y0) return;
    const to = roomFor(out);
    out.x0[to] = since[i];
    out.x1[to] = column;
    out.y0[to] = y0;
    out.y1[to] = y1;
    out.role[to] = colour[rank];
    out.row[to] = row[rank];
  };
  const put = (rank: number, at: number, column: number): number => {
    live[count] = rank;
    bottom[count] = at;
    since[count++] = column;
    return at + bytes[rank];
  };
  /** Goes on to a moment that a column shows. */
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
    const until = stack.bornBy(moment);
    for (; born < until; born++) if (end[born] > moment) top = put(born, top, column);
  };

  const wide = Math.max(1, Math.ceil((width * stack.mostLive) / MOST_STEPS));
  let shown = -1;
  fullest(stack, clock, view.x, width, wide, (moment, column) => {
    if (shown < 0) {
      let top = 0;
      for (const rank of stack.liveAt(moment)) top = put(rank, top, column);
      born = stack.bornBy(moment);
    } else if (moment !== shown) go(moment, column);
    shown = moment;
  });
  for (let i = 0; i < count; i++) close(i, width);
  return out;
}

/** Calls `visit` with the moment of each column, `wide` pixels apart: the position in it with the most in use. */
function fullest(
  { ages, inUse }: AgeStack,
  clock: Float64Array | null,
  [left, right]: Span,
  width: number,
  wide: number,
  visit: (moment: number, column: number) => void,
): void {
  const last = ages.positions - 1;
  if (last < 0) return;
  const startOf = (position: number): number => (clock === null ? position : clock[position]);
  const first = clock === null ? Math.floor(left) : lowerBound(clock, left, 0, last) - 1;
  let position = Math.min(Math.max(first, 0), last);
  for (let column = 0; column < width; column += wide) {
    const from = left + ((right - left) * column) / width;
    const to = left + ((right - left) * Math.min(column + wide, width)) / width;
    // What is over when the column begins is not in it; an event of no length at its very beginning is.
    while (position < last && startOf(position + 1) <= from && startOf(position) < from) position++;
    let moment = position;
    while (position < last && startOf(position + 1) < to)
      if (inUse[++position] > inUse[moment]) moment = position;
    visit(moment, column);
  }
}
