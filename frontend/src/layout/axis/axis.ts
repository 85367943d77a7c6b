import type { Tick } from "./ticks";
import { positionTicks, timeTicks } from "./ticks";
import type { Span } from "./span";
import { restoreSpan, saveSpan } from "./view";

/**
 * What x stands for: positions, each as wide as the next, or the times of the events that they are. The state of the
 * page speaks of positions only, so that a view is the same place on either axis.
 */
export interface Axis {
  /** Value at each position and at the end of the last one; null where these are the positions themselves. */
  clock: Float64Array | null;
  /** All there is, in values. */
  extent: Span;
  at: (position: number) => number;
  /** The position, with its fraction, whose stretch holds a value. */
  positionAt: (value: number) => number;
  /** Where a position is pointed at: its middle, or the moment of its event. */
  mark: (position: number) => number;
  ticks: (span: Span, most: number) => Tick[];
  /** Values to show for a remembered window of positions, and back. */
  fromSaved: (zoom: Span | null) => Span;
  toSaved: (span: Span) => Span | null;
}

export function positionAxis(length: number): Axis {
  const extent: Span = [0, Math.max(length, 1)];
  return {
    clock: null,
    extent,
    at: (position) => position,
    positionAt: (value) => value,
    mark: (position) => position + 0.5,
    ticks: positionTicks,
    fromSaved: (zoom) => restoreSpan(zoom, extent),
    toSaved: (span) => saveSpan(span, extent),
  };
}

/** The last event lasts this share of the whole, so that it is seen. */
const LAST_SHARE = 0.02;

/** An axis of time. `times` are those of the positions in ns and never decrease. */
export function timeAxis(times: Float64Array): Axis {
  const length = times.length;
  if (length === 0) return positionAxis(0);
  const clock = new Float64Array(length + 1);
  clock.set(times);
  clock[length] = times[length - 1] + Math.max((times[length - 1] - times[0]) * LAST_SHARE, 1);
  const extent: Span = [clock[0], clock[length]];
  const at = (position: number): number => {
    const whole = Math.min(Math.max(Math.floor(position), 0), length - 1);
    const share = Math.min(Math.max(position - whole, 0), 1);
    return clock[whole] + share * (clock[whole + 1] - clock[whole]);
  };
  const positionAt = (value: number): number => {
    const whole = stepAt(clock, value);
    const width = clock[whole + 1] - clock[whole];
    return whole + (width > 0 ? Math.min(Math.max((value - clock[whole]) / width, 0), 1) : 0);
  };
  return {
    clock,
    extent,
    at,
    positionAt,
    mark: at,
    ticks: timeTicks,
    fromSaved: (zoom) => {
      const span: Span = zoom === null ? extent : [at(zoom[0]), at(zoom[1])];
      return restoreSpan(span, extent);
    },
    // Not rounded as positions are: in a long pause a thousandth of a position can be many events' time.
    toSaved: (span) =>
      span[0] <= extent[0] && span[1] >= extent[1] ? null : [positionAt(span[0]), positionAt(span[1])],
  };
}

/** Index of the last step that begins at or before a value; the last but one of `x` for what lies past the end. */
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
