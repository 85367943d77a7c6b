import type { Span } from "./view";

export interface Tick {
  value: number;
  label: string;
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;

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
  return multiples(span, step).map((value) => ({ value, label: timeLabel(value, step) }));
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

function multiples(span: Span, step: number): number[] {
  const values: number[] = [];
  // Multiplying avoids the drift of repeated addition.
  for (let count = Math.ceil(span[0] / step); count * step <= span[1]; count++) values.push(count * step);
  return values;
}
