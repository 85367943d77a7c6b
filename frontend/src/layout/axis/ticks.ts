import type { Span } from "./span";

export interface Tick {
  value: number;
  label: string;
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;

/**
 * Ticks of a byte axis, at most `most` of them, on whole powers of two: a step of 256 MiB reads better than one of
 * 268.4 MB. One unit for the whole axis, with as many decimals as tell two neighbours apart.
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

/** Enough decimals to tell two multiples of the step apart. */
function decimalsOf(step: number): number {
  if (step >= 1) return 0;
  // Halves need one decimal and quarters two; from there on three digits of the step are more than can be read.
  return step === 0.5 ? 1 : Math.min(Math.ceil(-Math.log10(step)) + 1, 9);
}

/** Ticks of an axis of whole positions, at most `most` of them, every 1, 2 or 5 times a power of ten. */
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
 * Ticks of an axis of time in ns, at most `most` of them. In seconds since the beginning; where so close that seconds
 * would need more than six decimals, in the unit of the step, since the last whole second.
 */
export function timeTicks(span: Span, most: number): Tick[] {
  const least = Math.max((span[1] - span[0]) / Math.max(most, 1), 1);
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

/** A moment or a length of time in ns, in three decimals of the largest unit that it has one of: "2.587 s". */
export function formatTime(ns: number): string {
  const [scale, unit] = TIME_UNITS.find(([size]) => Math.abs(ns) >= size) ?? TIME_UNITS[3];
  return `${(ns / scale).toFixed(scale === 1 ? 0 : 3)} ${unit}`;
}

function multiples(span: Span, step: number): number[] {
  const values: number[] = [];
  // Counted, not added up: a sum of fractions would drift off the grid.
  for (let count = Math.ceil(span[0] / step); count * step <= span[1]; count++) values.push(count * step);
  return values;
}
