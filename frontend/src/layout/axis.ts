import { UNITS } from "../base/units";

export interface Tick {
  value: number;
  label: string;
}

/**
 * Return at most `most` ticks of a byte axis at multiples of a power of two: steps of 256 MiB read better
 * than steps of 268.4 MB. The axis has one unit, and enough decimals to distinguish adjacent ticks.
 */
export function byteTicks(span: Span, most: number): Tick[] {
  const least = (span[1] - span[0]) / Math.max(most, 1);
  const step = Math.max(1, 2 ** Math.ceil(Math.log2(least)));
  const highest = Math.max(Math.abs(span[0]), Math.abs(span[1]));
  const unit = Math.min(Math.max(Math.floor(Math.log2(Math.max(highest, 1)) / 10), 0), UNITS.length - 1);
  const scale = 1024 ** unit;
  const decimals = decimalsOf(step / scale);
  return multiples(span, step).map((value) => ({
    value,
    label: value === 0 ? "0" : `${(value / scale).toFixed(decimals)} ${UNITS[unit]}`,
  }));
}

/** Return the decimals needed to distinguish two multiples of the step. */
function decimalsOf(step: number): number {
  if (step >= 1) return 0;
  // One half needs one decimal, a quarter two. Below that, three digits of the step are enough.
  return step === 0.5 ? 1 : Math.min(Math.ceil(-Math.log10(step)) + 1, 9);
}

/** Return at most `most` ticks of an axis of integer positions, every 1, 2 or 5 times a power of ten. */
export function positionTicks(span: Span, most: number): Tick[] {
  const least = Math.max((span[1] - span[0]) / Math.max(most, 1), 1);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = power * ([1, 2, 5, 10].find((nice) => nice * power >= least) ?? 10);
  return multiples(span, step).map((value) => ({ value, label: value.toLocaleString("en-US") }));
}

const TIME_UNITS = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "\u00b5s"],
  [1, "ns"],
] as const;

/**
 * Return at most `most` ticks of a time axis in ns, as seconds since the start. If seconds would need more
 * than six decimals, labels are relative to the last whole second, in the unit of the step.
 */
export function timeTicks(span: Span, most: number): Tick[] {
  const least = Math.max((span[1] - span[0]) / Math.max(most, 1), 1);
  if (span[1] >= LONG_NS && least > SECOND_NS / 2) {
    const long =
      (LONG_STEPS.find((nice) => nice * SECOND_NS >= least) ?? Math.ceil(least / DAY_NS) * 86_400) *
      SECOND_NS;
    return multiples(span, long).map((value) => ({ value, label: longTime(value) }));
  }
  const power = 10 ** Math.floor(Math.log10(least));
  const step = power * ([1, 2, 5, 10].find((nice) => nice * power >= least) ?? 10);
  const label = span[1] < SECOND_NS ? shortLabel(span[1], step) : (value: number) => timeLabel(value, step);
  return multiples(span, step).map((value) => ({ value, label: label(value) }));
}

/** Return a function that formats times up to `most`, which is less than a second, all in one unit. */
function shortLabel(most: number, step: number): (value: number) => string {
  const [scale, unit] = TIME_UNITS.find(([size]) => most >= size) ?? TIME_UNITS[3];
  const decimals = Math.max(Math.ceil(Math.log10(scale / step)), 0);
  return (value) => `${(value / scale).toFixed(decimals)} ${unit}`;
}

function timeLabel(value: number, step: number): string {
  // Six decimals of a second are microseconds.
  if (step >= 1e3) return `${(value / 1e9).toFixed(Math.max(Math.ceil(9 - Math.log10(step)), 0))} s`;
  const second = Math.floor(value / 1e9);
  const [scale, unit] = step >= 100 ? TIME_UNITS[2] : TIME_UNITS[3];
  return `${second} s + ${((value - second * 1e9) / scale).toFixed(step < scale ? 1 : 0)} ${unit}`;
}

/** Times from here on are in hours, minutes and whole seconds. */
const LONG_NS = 600e9;
const SECOND_NS = 1e9;
const DAY_NS = 86_400e9;
/** Steps of a long axis, in seconds. */
const LONG_STEPS = [
  ...[1, 2, 5, 10, 15, 30],
  ...[60, 120, 300, 600, 900, 1800],
  ...[3600, 7200, 14_400, 21_600, 43_200, 86_400],
];

/** Format a time in ns without zero parts: "1 h 30 s". */
function longTime(ns: number): string {
  const seconds = Math.round(ns / SECOND_NS);
  const parts = [
    [Math.floor(seconds / 3600), "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [seconds % 60, "s"],
  ] as const;
  const shown = parts.filter(([count]) => count > 0).map(([count, unit]) => `${count} ${unit}`);
  return shown.length === 0 ? "0 s" : shown.join(" ");
}

/**
 * Format a time or duration in ns with three decimals, in the largest unit that fits: "2.587 s". From ten
 * minutes on, format it in whole seconds: "1 h 2 min 5 s".
 */
export function formatTime(ns: number): string {
  if (ns >= LONG_NS) return longTime(ns);
  const [scale, unit] = TIME_UNITS.find(([size]) => Math.abs(ns) >= size) ?? TIME_UNITS[3];
  return `${(ns / scale).toFixed(scale === 1 ? 0 : 3)} ${unit}`;
}

/** Return the x of a label's center: at its tick, but within the chart, whose margin is narrower than half a label. */
export function labelCenter(tick: number, labelWidth: number, chartWidth: number): number {
  return Math.min(Math.max(tick, labelWidth / 2 + 1), chartWidth - labelWidth / 2 - 1);
}

/**
 * Return the mark that is nearest to a point of a plot, in pixels; null if none is near. Coordinates of marks are
 * shares of the plot, from the left and from the bottom; those above the plot are at its top.
 */
export function nearestMark<Mark extends { x: number; y: number }>(
  marks: readonly Mark[],
  at: { x: number; y: number },
  size: { width: number; height: number },
  reach: number,
): Mark | null {
  let best: Mark | null = null;
  let least = reach;
  for (const mark of marks) {
    const away = Math.hypot(mark.x * size.width - at.x, (1 - Math.min(mark.y, 1)) * size.height - at.y);
    if (away < least) [best, least] = [mark, away];
  }
  return best;
}

function multiples(span: Span, step: number): number[] {
  const values: number[] = [];
  // Multiplying avoids the drift of repeated addition.
  for (let count = Math.ceil(span[0] / step); count * step <= span[1]; count++) values.push(count * step);
  return values;
}

/** Lowest and highest visible value of one axis. */
export type Span = readonly [number, number];

/** A window of the timeline, or all of it: values of the axis along x, bytes along y. */
export interface View {
  x: Span;
  y: Span;
}

export interface TimelineBox {
  start: number;
  end: number;
  bottom: number;
  top: number;
}

/** A rectangle in pixels, x to the right and y down. */
export interface PixelBox {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Move a span by `delta` within the limit. */
export function pan(span: Span, limit: Span, delta: number): Span {
  const shift = Math.min(Math.max(delta, limit[0] - span[0]), limit[1] - span[1]);
  return [span[0] + shift, span[1] + shift];
}

/**
 * Scale a span by `factor` (below 1 zooms in). `anchor` keeps its place on the screen. The result is at least
 * `least` long and stays within the limit.
 */
export function zoom(span: Span, limit: Span, anchor: number, factor: number, least: number): Span {
  const whole = limit[1] - limit[0];
  const length = Math.min(Math.max((span[1] - span[0]) * factor, Math.min(least, whole)), whole);
  const share = (anchor - span[0]) / (span[1] - span[0]);
  const start = Math.min(Math.max(anchor - share * length, limit[0]), limit[1] - length);
  return [start, start + length];
}

/** Return a span around [low, high] with a margin on both sides, at least `least` long and within the limit. */
export function spanAround(low: number, high: number, limit: Span, least: number): Span {
  // The range takes a third of the picture, so that the neighbors that explain a block stay visible.
  const length = Math.min(Math.max((high - low) * 3, least), limit[1] - limit[0]);
  const start = Math.min(Math.max((low + high - length) / 2, limit[0]), limit[1] - length);
  return [start, start + length];
}

/** Fewer than four positions show no context; no allocator aligns to less than 16 bytes. */
export const MIN_POSITIONS = 4;
export const MIN_BYTES = 16;

export function viewAround(box: TimelineBox, extent: View): View {
  return {
    x: spanAround(box.start, box.end, extent.x, MIN_POSITIONS),
    y: spanAround(box.bottom, box.top, extent.y, MIN_BYTES),
  };
}

/** Resolution of saved positions and bytes. At the closest zoom, four positions wide, a pixel is about 30 steps. */
const STEPS_PER_UNIT = 1e4;

/**
 * Return the part of a view to save: null for the whole axis, so that an untouched page has a short URL.
 * Otherwise rounded numbers that a URL keeps exactly, so that the restored view is identical to the pixel.
 */
export function saveSpan(span: Span, limit: Span): Span | null {
  return span[0] <= limit[0] && span[1] >= limit[1] ? null : [roundToStep(span[0]), roundToStep(span[1])];
}

function roundToStep(value: number): number {
  return Math.round(value * STEPS_PER_UNIT) / STEPS_PER_UNIT;
}

/** Return the span for a saved one, which may come from another recording's URL. */
export function restoreSpan(span: Span | null, limit: Span): Span {
  if (span === null) return limit;
  const start = Math.min(Math.max(span[0], limit[0]), limit[1]);
  const end = Math.min(Math.max(span[1], limit[0]), limit[1]);
  return end > start ? [start, end] : limit;
}

/**
 * Unit of the x axis: equally spaced positions, or times of events. The page's state contains positions only,
 * so that a view shows the same range on either axis.
 */
export interface Axis {
  /** Value at each position and at the end of the last one; null if values are positions. */
  clock: Float64Array | null;
  /** What values are: "time", or "estimated time"; empty for positions. */
  measure: string;
  /** The index axis, in values. */
  extent: Span;
  at: (position: number) => number;
  /** Return the position that contains a value, with its fraction. */
  positionAt: (value: number) => number;
  /** Return the value where a position is marked: its middle, or the time of its event. */
  mark: (position: number) => number;
  ticks: (span: Span, most: number) => Tick[];
  /** Convert a saved range of positions into values, and back. */
  fromSaved: (zoom: Span | null) => Span;
  toSaved: (span: Span) => Span | null;
}

export function positionAxis(length: number): Axis {
  const extent: Span = [0, Math.max(length, 1)];
  return {
    clock: null,
    measure: "",
    extent,
    at: (position) => position,
    positionAt: (value) => value,
    mark: (position) => position + 0.5,
    ticks: positionTicks,
    fromSaved: (zoom) => restoreSpan(zoom, extent),
    toSaved: (span) => saveSpan(span, extent),
  };
}

/** The last event gets this share of the axis, so that it is visible. */
const LAST_SHARE = 0.02;

/** Create a time axis. `times` are those of events in ns, never decreasing. */
export function timeAxis(times: Float64Array): Axis {
  const length = times.length;
  if (length === 0) return positionAxis(0);
  const clock = new Float64Array(length + 1);
  clock.set(times);
  clock[length] = times[length - 1] + Math.max((times[length - 1] - times[0]) * LAST_SHARE, 1);
  return clockAxis(clock, "time");
}

/** Create a time axis of positions that take these times, in seconds. */
export function durationAxis(seconds: Float64Array, measure: string): Axis {
  const clock = new Float64Array(seconds.length + 1);
  for (let i = 0; i < seconds.length; i++) clock[i + 1] = clock[i] + seconds[i] * SECOND_NS;
  return clock[seconds.length] > 0 ? clockAxis(clock, measure) : positionAxis(seconds.length);
}

function clockAxis(clock: Float64Array, measure: string): Axis {
  const length = clock.length - 1;
  const extent: Span = [clock[0], clock[length]];
  const at = (position: number): number => {
    const index = Math.min(Math.max(Math.floor(position), 0), length - 1);
    const share = Math.min(Math.max(position - index, 0), 1);
    return clock[index] + share * (clock[index + 1] - clock[index]);
  };
  const positionAt = (value: number): number => {
    const index = stepAt(clock, value);
    const width = clock[index + 1] - clock[index];
    return index + (width > 0 ? Math.min(Math.max((value - clock[index]) / width, 0), 1) : 0);
  };
  return {
    clock,
    measure,
    extent,
    at,
    positionAt,
    mark: at,
    ticks: timeTicks,
    fromSaved: (zoom) => restoreSpan(zoom && [at(zoom[0]), at(zoom[1])], extent),
    // Positions are not rounded here: in a long pause, a thousandth of a position can span many events.
    toSaved: (span) =>
      span[0] <= extent[0] && span[1] >= extent[1] ? null : [positionAt(span[0]), positionAt(span[1])],
  };
}

/**
 * Return the index of the last step that starts at or before a value; for values past the end, the last but one of `x`.
 */
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
