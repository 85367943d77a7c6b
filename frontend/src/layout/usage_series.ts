import type { Usage } from "../payload/recording";
import type { Span } from "./timeline_blocks";

/** The curves of the usage chart over shared x values: positions, then bytes. */
export type UsageSeries = [x: Float64Array, live: Float64Array, least: Float64Array, unpadded: Float64Array];

/**
 * Steps, one per position or bucket: a value holds from its x to the next one. The last one is given twice, so that
 * it reaches `end`.
 */
export function usageSeries(usage: Usage, end: number): UsageSeries {
  const steps = (column: Int32Array | Float64Array, last: number): Float64Array => {
    const values = new Float64Array(usage.length + 1);
    values.set(column);
    values[usage.length] = last;
    return values;
  };
  const lastOf = (column: Float64Array): number => column[usage.length - 1] ?? 0;
  return [
    steps(usage.position, end),
    steps(usage.live_max, lastOf(usage.live_max)),
    steps(usage.live_min, lastOf(usage.live_min)),
    steps(usage.unpadded_max, lastOf(usage.unpadded_max)),
  ];
}

/** A chart is about a thousand pixels wide: fewer buckets than these in sight show as stairs. */
const ENOUGH_BUCKETS = 1024;

/**
 * The window to ask the backend for, when the buckets of the whole axis are too coarse for `zoom`; else null. It
 * reaches a window's length to either side and lies on a grid of powers of two, so that moving about asks rarely.
 */
export function finerWindow(zoom: Span, length: number, buckets: number): Span | null {
  const span = zoom[1] - zoom[0];
  if (buckets >= length || (span / length) * buckets >= ENOUGH_BUCKETS) return null;
  const grid = 2 ** Math.ceil(Math.log2(span));
  return [
    Math.max((Math.floor(zoom[0] / grid) - 1) * grid, 0),
    Math.min((Math.floor(zoom[1] / grid) + 2) * grid, length),
  ];
}

/** Index of the step that position `at` lies in. */
export function stepAt(x: ArrayLike<number>, at: number): number {
  let low = 0;
  let high = x.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (x[middle] <= at) low = middle;
    else high = middle;
  }
  return low;
}
