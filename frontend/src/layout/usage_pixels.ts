import { stepAt } from "./axis";
import type { Span } from "./timeline_blocks";
import type { Curve, UsageSeries } from "./usage_series";

/**
 * The steps in sight or, where they are more than the pixels, a step for each pixel with the most and the least of all
 * that reach into it: what there is to draw depends on the pixels, however many steps there are, and no peak or valley
 * is lost. Where the least is the most all along they are one column.
 */
export function perPixel({ x, curves }: UsageSeries, window: Span, pixels: number): UsageSeries {
  const from = stepAt(x, window[0]);
  let to = from + 1;
  while (to < x.length && x[to] <= window[1]) to++;
  to = Math.min(to + 1, x.length);
  if (to - from <= pixels)
    return {
      x: x.subarray(from, to),
      curves: curves.map(({ key, most, least }) => ({
        key,
        ...joined(most.subarray(from, to), least.subarray(from, to)),
      })),
    };

  // Column c shows steps first[c] to first[c + 1], both included: the last one begins in it and goes on.
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
  return { x: columns, curves: curves.map((curve) => gathered(curve, first)) };
}

function gathered({ key, most, least }: Curve, first: Int32Array): Curve {
  const columns = first.length - 1;
  const high = new Float64Array(columns);
  const low = new Float64Array(columns);
  for (let column = 0; column < columns; column++) {
    high[column] = most[first[column]];
    low[column] = least[first[column]];
    for (let step = first[column] + 1; step <= first[column + 1]; step++) {
      // Of what is not known in a part of a pixel the rest is shown.
      if (most[step] > high[column] || Number.isNaN(high[column])) high[column] = most[step];
      if (least[step] < low[column] || Number.isNaN(low[column])) low[column] = least[step];
    }
  }
  return { key, ...joined(high, low) };
}

function joined(most: Float64Array, least: Float64Array): { most: Float64Array; least: Float64Array } {
  return { most, least: most.every((value, i) => value === least[i]) ? most : least };
}
