import type { Span } from "../axis/span";
import { timeAxis } from "../axis/axis";

/** Positions of the page's state, which mean times of a curve. */
export interface Kept {
  position: number | null;
  zoom: Span | null;
}

/**
 * Return the positions that have in `next` the times that `kept` has in `last`. A running job appends samples, which
 * changes nothing, and now and then keeps fewer of the older ones.
 */
export function keepTimes({ position, zoom }: Kept, last: Float64Array, next: Float64Array): Kept {
  if (next.length === 0 || startsWith(next, last)) return { position, zoom };
  const [from, to] = [timeAxis(last), timeAxis(next)];
  const moved = (at: number): number => to.positionAt(from.at(at));
  return {
    position: position === null ? null : Math.floor(moved(position)),
    zoom: zoom === null ? null : [moved(zoom[0]), moved(zoom[1])],
  };
}

function startsWith(times: Float64Array, start: Float64Array): boolean {
  if (times.length < start.length) return false;
  // Samples are dropped from the whole of the older part: its times differ.
  return start.every((time, i) => time === times[i]);
}
