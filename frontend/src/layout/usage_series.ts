import type { Usage } from "../payload/recording";
import { type Axis, stepAt } from "./axis";
import type { Span } from "./timeline_blocks";

/** The curves of the usage chart over shared x values: values of the axis, then bytes. */
export type UsageSeries = [x: Float64Array, live: Float64Array, least: Float64Array, unpadded: Float64Array];

/**
 * Steps, one per position or bucket: a value holds from its x to the next one. The last one is given twice, so that
 * it reaches `end`.
 */
export function usageSeries(usage: Usage, end: number, axis: Axis): UsageSeries {
  const steps = (column: Int32Array | Float64Array, last: number): Float64Array => {
    const values = new Float64Array(usage.length + 1);
    values.set(column);
    values[usage.length] = last;
    return values;
  };
  const lastOf = (column: Float64Array): number => column[usage.length - 1] ?? 0;
  return [
    steps(usage.position, end).map(axis.at),
    steps(usage.live_max, lastOf(usage.live_max)),
    steps(usage.live_min, lastOf(usage.live_min)),
    steps(usage.unpadded_max, lastOf(usage.unpadded_max)),
  ];
}

/** The most of a column of positions in each step of the usage, the last one given twice, as in usageSeries. */
export function mostPerStep(values: Float64Array, { position, length }: Usage, end: number): Float64Array {
  const most = new Float64Array(length + 1);
  for (let step = 0; step < length; step++) {
    const to = step + 1 < length ? position[step + 1] : end;
    for (let at = position[step]; at < to; at++) most[step] = Math.max(most[step], values[at]);
  }
  most[length] = most[length - 1] ?? 0;
  return most;
}

/** A little air, so that no line lies on the edge. */
const AIR = 0.06;

/** Bytes to show along y: from zero to the peak or to all there is, or just what the curve reaches in the window. */
export function rangeOf(
  range: "peak" | "capacity" | "fit",
  [x, live, least]: UsageSeries,
  window: Span,
  peak: number,
  capacity: number | null,
): Span {
  if (range === "peak") return [0, Math.max(peak, 1) * (1 + AIR)];
  if (range === "capacity") return [0, Math.max(capacity ?? 0, peak, 1) * (1 + AIR)];
  let [low, high] = [Infinity, -Infinity];
  for (let i = stepAt(x, window[0]); i < x.length && x[i] <= window[1]; i++) {
    low = Math.min(low, least[i]);
    high = Math.max(high, live[i]);
  }
  if (!(high >= low)) return [0, 1];
  const air = Math.max(high - low, 1) * AIR;
  return [low - air, high + air];
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
