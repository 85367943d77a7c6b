import type { TrendPoint, TrendSeries } from "../../payload/generated/answers";
import type { TrendBy } from "../../payload/generated/constants";
import { byteTicks, type Tick } from "../axis";

/** A point of the chart. Coordinates are shares of the plot, from the left and from the bottom. */
export interface TrendMark {
  /** Index into the points of the series. */
  point: number;
  x: number;
  y: number;
  /** The worst device's peak, or the program's reserved bytes. */
  upper: number;
  isRise: boolean;
}

export interface TrendChart {
  marks: TrendMark[];
  bytes: Tick[];
  /** Labels of the x axis, at shares of the plot. */
  times: { x: number; label: string }[];
  /** Bytes at the bottom and at the top. */
  span: readonly [number, number];
}

/** A text beside a mark, in pixels of the plot. */
interface TrendLabel {
  point: number;
  text: string;
  /** Its left end, or its right end. */
  x: number;
  anchor: "start" | "end";
  lane: number;
}

/** Share of the largest value that the y axis spans at least: noise stays a flat line. */
const LEAST_SPAN = 0.1;
const MARGIN = 0.08;
const CHARACTER = 6.1;
const GAP = 10;

/** Return the name of a series in the URL: a program may have the name of a memory. */
export function seriesKey({ name, is_program: isProgram }: TrendSeries): string {
  return `${isProgram ? "program" : "memory"}:${name}`;
}

export function risesOf({ points }: TrendSeries): number {
  return points.filter(({ because }) => because !== null).length;
}

/** Lay out a series: days at their dates, captures equally spaced. */
export function trendChart({ points }: TrendSeries, by: TrendBy, mostTicks: number): TrendChart {
  const places = points.map(({ day }, i) => (by === "day" ? Date.parse(day) : i));
  const [first, last] = [places.at(0) ?? 0, places.at(-1) ?? 0];
  const x = (i: number): number => (last > first ? (places[i] - first) / (last - first) : 0.5);
  const span = spanOf(points);
  const y = (bytes: number): number => (bytes - span[0]) / (span[1] - span[0]);
  return {
    marks: points.map(({ peak_bytes, largest_bytes, because }, i) => ({
      point: i,
      x: x(i),
      y: y(peak_bytes),
      upper: y(Math.max(largest_bytes, 0)),
      isRise: because !== null,
    })),
    bytes: byteTicks(span, 5),
    times: spaced(
      // The last part of a capture's name is its session.
      points.map(({ day, capture }) => (by === "day" ? day : capture.slice(capture.lastIndexOf("/") + 1))),
      x,
      mostTicks,
    ),
    span,
  };
}

/** Return the bytes that the y axis spans: all values, and at least LEAST_SPAN of the largest. */
function spanOf(points: readonly TrendPoint[]): [number, number] {
  let [low, high] = [Infinity, 0];
  for (const { peak_bytes: peak, largest_bytes: largest } of points) {
    low = Math.min(low, peak, largest >= 0 ? largest : peak);
    high = Math.max(high, peak, largest);
  }
  if (high === 0) return [0, 1];
  const lacking = Math.max(LEAST_SPAN * high - (high - low), 0);
  const margin = MARGIN * Math.max(high - low, lacking);
  return [Math.max(low - lacking / 2 - margin, 0), high + lacking / 2 + margin];
}

/** Label the first point, and as many others as there is room for. */
function spaced(
  names: readonly string[],
  x: (i: number) => number,
  most: number,
): { x: number; label: string }[] {
  const found: { x: number; label: string }[] = [];
  const gap = 1 / Math.max(most, 1) - 1e-9; // equal distances must not differ by rounding
  names.forEach((label, i) => {
    const before = found.at(-1);
    if (before === undefined || x(i) - before.x >= gap) found.push({ x: x(i), label });
  });
  return found;
}

/**
 * Place the texts of rises in lanes without overlap, the largest rises first. A text that fits in no lane is left
 * out, and a text that is longer than the space beside its mark is shortened.
 */
export function placeLabels(
  chart: TrendChart,
  { points }: TrendSeries,
  textOf: (point: TrendPoint) => string,
  width: number,
  lanes: number,
): TrendLabel[] {
  const rises = chart.marks.filter(({ isRise }) => isRise);
  const largest = rises.slice().sort((a, b) => points[b.point].rise_bytes - points[a.point].rise_bytes);
  const taken: (readonly [number, number])[][] = Array.from({ length: lanes }, () => []);
  const found: TrendLabel[] = [];
  for (const { point, x: share } of largest) {
    const x = share * width;
    const anchor = share <= 0.5 ? "start" : "end";
    const room = anchor === "start" ? width - x : x;
    const full = textOf(points[point]);
    const fits = Math.floor(room / CHARACTER);
    const text = full.length > fits ? `${full.slice(0, Math.max(fits - 1, 0))}…` : full;
    const wide = text.length * CHARACTER + GAP;
    const [from, to] = anchor === "start" ? [x - GAP, x + wide] : [x - wide, x + GAP];
    const lane = taken.findIndex((others) => others.every(([low, high]) => to <= low || high <= from));
    if (lane < 0) continue;
    taken[lane].push([from, to]);
    found.push({ point, text, x, anchor, lane });
  }
  return found;
}
