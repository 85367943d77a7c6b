import type { Spans } from "../payload/recording";
import { stepAt } from "./axis";

/** Spans side by side in as few lanes as keep any two of a lane apart. */
export interface Lanes {
  /** Lane of each span, 0 at the top. */
  lane: Int32Array;
  count: number;
}

/** Threads that overlap deeper than this are a file's mistake; what they hold beyond is put into the last lane. */
const MOST_LANES = 256;

/** Puts each span, in order of start and the longer first, into the first lane that is free. */
export function spanLanes({ length, start_ns, end_ns }: Spans): Lanes {
  const order = Array.from({ length }, (_, span) => span).sort(
    (a, b) => start_ns[a] - start_ns[b] || end_ns[b] - end_ns[a],
  );
  const ends: number[] = [];
  const lane = new Int32Array(length);
  for (const span of order) {
    let free = ends.findIndex((end) => end <= start_ns[span]);
    if (free < 0) free = Math.min(ends.length, MOST_LANES - 1);
    ends[free] = end_ns[span];
    lane[span] = free;
  }
  return { lane, count: ends.length };
}

/** How many spans are in lanes from this one on. */
export function spansFrom({ lane }: Lanes, first: number): number {
  return lane.reduce((count, of) => count + (of >= first ? 1 : 0), 0);
}

/** The position, with its fraction, at a moment; `times` are those of the positions. */
export function positionOfTime(times: Float64Array, ns: number): number {
  const last = times.length - 1;
  if (last < 0 || ns <= times[0]) return 0;
  if (ns >= times[last]) return last + 1;
  const whole = stepAt(times, ns);
  const width = times[whole + 1] - times[whole];
  return whole + (width > 0 ? (ns - times[whole]) / width : 0);
}
