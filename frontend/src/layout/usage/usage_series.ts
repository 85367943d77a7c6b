import type { Usage } from "../../payload/recording/recording";
import { type Axis, type Span, stepAt } from "../axis";

/**
 * Curves of the usage chart, in the order of the legend. Two are constant lines: the ceiling, at an allocator's
 * capacity or a program's reserved bytes, and the limit within which a program must fit.
 */
const CURVES = [
  "live",
  "requested",
  "heap",
  "stack",
  "held",
  "free",
  "largest_free",
  "fragmentation",
  "ceiling",
  "limit",
] as const;
export type CurveKey = (typeof CURVES)[number];

/** Curves that are visible by default. */
const SHOWN_BY_DEFAULT: ReadonlySet<CurveKey> = new Set([
  "live",
  "requested",
  "heap",
  "held",
  "ceiling",
  "limit",
]);

/** Return the curves that have data. With a stack, the heap curve replaces the curve of requested bytes. */
export function availableCurves({ reported }: Usage, ceiling: boolean, limit = false): CurveKey[] {
  const stack = reported.some(({ key, max }) => key === "stack" && max.some((bytes) => bytes > 0));
  const withData = reported.filter(({ key, max }) =>
    key === "heap" || key === "stack" ? stack : !max.every(Number.isNaN),
  );
  const known = new Set<CurveKey>(["live", ...withData.map(({ key }) => key)]);
  if (!stack) known.add("requested");
  if (ceiling) known.add("ceiling");
  if (limit) known.add("limit");
  return CURVES.filter((key) => known.has(key));
}

/**
 * Return the visible curves. `switched` lists, separated by commas, the curves whose state differs from the default.
 */
export function shownCurves(known: readonly CurveKey[], switched: string): CurveKey[] {
  const changed = new Set(switched.split(","));
  return known.filter((key) => SHOWN_BY_DEFAULT.has(key) !== changed.has(key));
}

export function toggleCurve(switched: string, key: CurveKey): string {
  const changed = new Set(switched.split(",").filter((name) => name !== ""));
  if (!changed.delete(key)) changed.add(key);
  return CURVES.filter((name) => changed.has(name)).join(",");
}

/** Maximum and minimum for each step, in bytes (fragmentation: a share); NaN if unknown. */
interface UsageCurve {
  key: CurveKey;
  max: Float64Array;
  min: Float64Array;
}

/** Curves over shared values of the axis. A value applies from its x to the next x. */
export interface UsageSeries {
  x: Float64Array;
  curves: readonly UsageCurve[];
}

/** Return one step for each position or bucket. The last value is repeated, so that it extends to `end`. */
export function usageSeries(usage: Usage, end: number, axis: Axis, shown: readonly CurveKey[]): UsageSeries {
  const all: readonly UsageCurve[] = [
    { key: "live", max: usage.live_max, min: usage.live_min },
    { key: "requested", max: usage.unpadded_max, min: usage.unpadded_min },
    ...usage.reported,
  ];
  const x = new Float64Array(usage.length + 1);
  for (let step = 0; step < usage.length; step++) x[step] = axis.at(usage.position[step]);
  x[usage.length] = axis.at(end);
  const curves = all
    .filter(({ key }) => shown.includes(key))
    .map(({ key, max, min }) => ({ key, max: repeatLast(max), min: repeatLast(min) }));
  return { x, curves };
}

function repeatLast(values: Float64Array): Float64Array {
  const steps = new Float64Array(values.length + 1);
  steps.set(values);
  steps[values.length] = values[values.length - 1] ?? 0;
  return steps;
}

/** A limit above this multiple of a program's reserved bytes would flatten its curves. */
const FAR_LIMIT = 2;

/** Return whether a program's limit is near enough to its reserved bytes to be on the chart. */
export function isNear(limit: number | null, reserved: number | null): limit is number {
  return limit !== null && reserved !== null && limit <= FAR_LIMIT * reserved;
}

/** Margin that keeps curves off the edge. */
const MARGIN = 0.06;

/**
 * Return the bytes to show along y: from zero to the peak or to the capacity, including all curves, or only
 * the range of the curves in the window.
 */
export function byteRange(
  range: "peak" | "capacity" | "fit",
  { x, curves }: UsageSeries,
  window: Span,
  peak: number,
  ceiling: number | null,
): Span {
  let [low, high] = [Infinity, -Infinity];
  const whole = range !== "fit";
  const first = whole ? 0 : stepAt(x, window[0]);
  for (const { key, max, min } of curves) {
    if (key === "fragmentation") continue;
    for (let i = first; i < x.length && (whole || x[i] <= window[1]); i++) {
      if (min[i] < low) low = min[i];
      if (max[i] > high) high = max[i];
    }
  }
  if (whole) {
    const top = Math.max(high, peak, 1, range === "capacity" ? (ceiling ?? 0) : 0);
    return [Math.min(low, 0), top * (1 + MARGIN)];
  }
  if (!(high >= low)) return [0, 1];
  const air = Math.max(high - low, 1) * MARGIN;
  return [low - air, high + air];
}

/** A chart is about a thousand pixels wide. Fewer visible buckets than this look like stairs. */
const MIN_BUCKETS_IN_VIEW = 1024;

/**
 * Return the window to request from the backend if the buckets of the whole axis are too coarse for `zoom`;
 * otherwise null. The window extends by its own length to both sides and is aligned to powers of two, so that
 * panning rarely needs a request.
 */
export function finerWindow(zoom: Span, length: number, buckets: number): Span | null {
  const span = zoom[1] - zoom[0];
  if (buckets >= length || (span / length) * buckets >= MIN_BUCKETS_IN_VIEW) return null;
  const grid = 2 ** Math.ceil(Math.log2(span));
  return [
    Math.max((Math.floor(zoom[0] / grid) - 1) * grid, 0),
    Math.min((Math.floor(zoom[1] / grid) + 2) * grid, length),
  ];
}

/**
 * Return the visible steps, or one step for each pixel if there are more steps than pixels. A pixel's step
 * has the maximum and minimum of all steps that overlap it, so no peak or valley is lost, and the drawing
 * cost depends on the pixels only. If minimum and maximum are equal everywhere, they share one column.
 */
export function reduceToPixels({ x, curves }: UsageSeries, window: Span, pixels: number): UsageSeries {
  const from = stepAt(x, window[0]);
  let to = from + 1;
  while (to < x.length && x[to] <= window[1]) to++;
  to = Math.min(to + 1, x.length);
  if (to - from <= pixels)
    return {
      x: x.subarray(from, to),
      curves: curves.map(({ key, max, min }) => ({
        key,
        ...shareIfEqual(max.subarray(from, to), min.subarray(from, to)),
      })),
    };

  // Column c shows steps first[c] to first[c + 1], both included: the last one starts in it and continues.
  const first = new Int32Array(pixels + 1);
  const columns = new Float64Array(pixels);
  const pixel = (window[1] - window[0]) / pixels;
  let step = from;
  for (let column = 0; column <= pixels; column++) {
    const left = window[0] + column * pixel;
    while (step + 1 < to && x[step + 1] <= left) step++;
    first[column] = step;
    if (column < pixels) columns[column] = left;
  }
  return { x: columns, curves: curves.map((curve) => reduceCurve(curve, first)) };
}

function reduceCurve({ key, max, min }: UsageCurve, first: Int32Array): UsageCurve {
  const columns = first.length - 1;
  const high = new Float64Array(columns);
  const low = new Float64Array(columns);
  for (let column = 0; column < columns; column++) {
    high[column] = max[first[column]];
    low[column] = min[first[column]];
    for (let step = first[column] + 1; step <= first[column + 1]; step++) {
      // If a pixel is partly unknown, the known part is shown.
      if (max[step] > high[column] || Number.isNaN(high[column])) high[column] = max[step];
      if (min[step] < low[column] || Number.isNaN(low[column])) low[column] = min[step];
    }
  }
  return { key, ...shareIfEqual(high, low) };
}

function shareIfEqual(max: Float64Array, min: Float64Array): { max: Float64Array; min: Float64Array } {
  return { max, min: max.every((value, i) => value === min[i]) ? max : min };
}
