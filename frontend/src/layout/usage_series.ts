import type { Program, Usage } from "../payload/recording";
import { type Axis, stepAt } from "./axis";
import type { Span } from "./timeline_blocks";

/** What can be drawn over the axis, in the order of the legend. The ceiling is one line: all there is. */
export const CURVES = [
  "live",
  "requested",
  "heap",
  "stack",
  "free",
  "largest_free",
  "fragmented",
  "ceiling",
] as const;
export type CurveKey = (typeof CURVES)[number];

/** These are drawn until they are switched off, the others once they are switched on. */
const AT_FIRST: ReadonlySet<CurveKey> = new Set(["live", "requested", "heap", "ceiling"]);

/** What a legend may offer. Where there is a stack, the heap alone says more than what was asked for. */
export function knownCurves(usage: Usage, stack: boolean, ceiling: boolean): CurveKey[] {
  const told = new Set<CurveKey>([
    "live",
    ...(stack ? (["heap", "stack"] as const) : (["requested"] as const)),
    ...usage.free.map(({ key }) => key),
    ...(ceiling ? (["ceiling"] as const) : []),
  ]);
  return CURVES.filter((key) => told.has(key));
}

/** The curves to draw: `switched` names those that are not as at first, with commas between. */
export function shownCurves(known: readonly CurveKey[], switched: string): CurveKey[] {
  const changed = new Set(switched.split(","));
  return known.filter((key) => AT_FIRST.has(key) !== changed.has(key));
}

export function switchCurve(switched: string, key: CurveKey): string {
  const changed = new Set(switched.split(",").filter((name) => name !== ""));
  if (!changed.delete(key)) changed.add(key);
  return CURVES.filter((name) => changed.has(name)).join(",");
}

/** The most and the least bytes in each step; NaN where nothing is known of them. */
export interface Curve {
  key: CurveKey;
  most: Float64Array;
  least: Float64Array;
}

/** Curves over shared values of the axis. A value holds from its x to the next one. */
export interface UsageSeries {
  x: Float64Array;
  curves: readonly Curve[];
}

/**
 * Steps, one per position or bucket. The last one is given twice, so that it reaches `end`. Heap and stack are made of
 * the bytes at each position that rows explain (`explained`) and that none does.
 */
export function usageSeries(
  usage: Usage,
  end: number,
  axis: Axis,
  shown: readonly CurveKey[],
  program: Program | null,
  explained: Float64Array | null,
): UsageSeries {
  const whole = (key: CurveKey, most: Float64Array, least: Float64Array): Curve => ({
    key,
    most: lastTwice(most),
    least: lastTwice(least),
  });
  const perPosition = (key: CurveKey, values: Float64Array | null | undefined): Curve[] =>
    values == null ? [] : [{ key, ...extremesPerStep(values, usage, end) }];
  const all: Curve[] = [
    whole("live", usage.live_max, usage.live_min),
    whole("requested", usage.unpadded_max, usage.unpadded_min),
    ...perPosition("heap", shown.includes("heap") ? explained : null),
    ...perPosition("stack", shown.includes("stack") ? program?.unexplained : null),
    ...usage.free.map(({ key, most, least }) => whole(key, most, least)),
  ];
  const x = new Float64Array(usage.length + 1);
  for (let step = 0; step < usage.length; step++) x[step] = axis.at(usage.position[step]);
  x[usage.length] = axis.at(end);
  return { x, curves: all.filter(({ key }) => shown.includes(key)) };
}

function lastTwice(values: Float64Array): Float64Array {
  const steps = new Float64Array(values.length + 1);
  steps.set(values);
  steps[values.length] = values[values.length - 1] ?? 0;
  return steps;
}

/** Extremes of a column of positions in each step of the usage, the last ones given twice. */
export function extremesPerStep(
  values: Float64Array,
  { position, length }: Usage,
  end: number,
): { most: Float64Array; least: Float64Array } {
  const most = new Float64Array(length);
  const least = new Float64Array(length);
  for (let step = 0; step < length; step++) {
    const to = step + 1 < length ? position[step + 1] : end;
    most[step] = least[step] = values[position[step]];
    for (let at = position[step] + 1; at < to; at++) {
      if (values[at] > most[step]) most[step] = values[at];
      if (values[at] < least[step]) least[step] = values[at];
    }
  }
  return { most: lastTwice(most), least: lastTwice(least) };
}

/** A little air, so that no line lies on the edge. */
const AIR = 0.06;

/**
 * Bytes to show along y: from zero to the peak or to all there is, and as far as any curve goes, or just what the
 * curves reach in the window.
 */
export function rangeOf(
  range: "peak" | "capacity" | "fit",
  { x, curves }: UsageSeries,
  window: Span,
  peak: number,
  ceiling: number | null,
): Span {
  let [low, high] = [Infinity, -Infinity];
  const whole = range !== "fit";
  for (const { most, least } of curves)
    for (let i = whole ? 0 : stepAt(x, window[0]); i < x.length && (whole || x[i] <= window[1]); i++) {
      if (least[i] < low) low = least[i];
      if (most[i] > high) high = most[i];
    }
  if (whole) {
    const top = Math.max(high, peak, 1, range === "capacity" ? (ceiling ?? 0) : 0);
    return [Math.min(low, 0), top * (1 + AIR)];
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
