import { stepAt } from "./axis";
import type { Span } from "./timeline_blocks";
import type { Curve, UsageSeries } from "./usage_series";

/**
 * The steps in sight, those that share a pixel put together: its most and its least, and then the step that goes on
 * behind it. What there is to draw depends on the pixels, however many steps there are.
 */
export function perPixel({ x, curves }: UsageSeries, window: Span, pixels: number): UsageSeries {
  const from = stepAt(x, window[0]);
  let to = from;
  while (to < x.length && x[to] <= window[1]) to++;
  to = Math.min(to + 1, x.length);
  const pixel = (window[1] - window[0]) / pixels;
  const pixelOf = (step: number): number => Math.floor((x[step] - window[0]) / pixel);

  // Of each group of steps in one pixel: the first, and one past the last.
  const first: number[] = [];
  const past: number[] = [];
  for (let step = from; step < to; step = past[past.length - 1]) {
    let next = step + 1;
    while (next < to && pixelOf(next) === pixelOf(step)) next++;
    first.push(step);
    past.push(next);
  }
  // Each group twice: as a whole, and its last step, from the next pixel on.
  const columns = new Float64Array(first.length * 2);
  first.forEach((step, group) => {
    const last = past[group] - 1;
    columns[2 * group] = x[step];
    columns[2 * group + 1] =
      last === step ? x[step] : Math.max(window[0] + (pixelOf(step) + 1) * pixel, x[last]);
  });
  return { x: columns, curves: curves.map((curve) => gathered(curve, first, past)) };
}

function gathered({ key, most, least }: Curve, first: number[], past: number[]): Curve {
  const high = new Float64Array(first.length * 2);
  const low = new Float64Array(first.length * 2);
  first.forEach((step, group) => {
    high[2 * group] = most[step];
    low[2 * group] = least[step];
    for (let next = step + 1; next < past[group]; next++) {
      if (most[next] > high[2 * group]) high[2 * group] = most[next];
      if (least[next] < low[2 * group]) low[2 * group] = least[next];
    }
    high[2 * group + 1] = most[past[group] - 1];
    low[2 * group + 1] = least[past[group] - 1];
  });
  return { key, most: high, least: low };
}
