import { positionTicks, type Tick, timeTicks } from "./ticks";
import { restoreSpan, saveSpan, type Span } from "./view";

/**
 * Unit of the x axis: equally spaced positions, or times of events. The page's state contains positions only,
 * so that a view shows the same range on either axis.
 */
export interface Axis {
  /** Value at each position and at the end of the last one; null if values are positions. */
  clock: Float64Array | null;
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

/** Create a time axis. `times` are the positions' times in ns, never decreasing. */
export function timeAxis(times: Float64Array): Axis {
  const length = times.length;
  if (length === 0) return positionAxis(0);
  const clock = new Float64Array(length + 1);
  clock.set(times);
  clock[length] = times[length - 1] + Math.max((times[length - 1] - times[0]) * LAST_SHARE, 1);
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
    extent,
    at,
    positionAt,
    mark: at,
    ticks: timeTicks,
    fromSaved: (zoom) => {
      const span: Span = zoom === null ? extent : [at(zoom[0]), at(zoom[1])];
      return restoreSpan(span, extent);
    },
    // Positions are not rounded here: in a long pause, a thousandth of a position can span many events.
    toSaved: (span) =>
      span[0] <= extent[0] && span[1] >= extent[1] ? null : [positionAt(span[0]), positionAt(span[1])],
  };
}

/**
 * Return the index of the last step that starts at or before a value; for values past the end, the last but
 * one of `x`.
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
