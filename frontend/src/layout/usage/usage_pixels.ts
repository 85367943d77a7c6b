import { stepAt } from "../axis/axis";
import type { Span } from "../axis/span";
import type { UsageCurve, UsageSeries } from "./usage_series";

/**
 * Return the visible steps, or one step for each pixel if there are more steps than pixels. A pixel's step
 * has the maximum and minimum of all steps that overlap it, so no peak or valley is lost, and the drawing
 * cost depends on the pixels only. If minimum and maximum are equal everywhere, they share one column.
 */
export function reduceToPixels({ x, curves }: UsageSeries, window: Span, pixels: number): UsageSeries {
  const from = stepAt(x, window[0]);
  let to = from + 1;
  while (to < x.length && x[to] <= window[1]) to++;
  to = Math.min(to + 1, x.length);
  if (to - from <= pixels)
    return {
      x: x.subarray(from, to),
      curves: curves.map(({ key, max, min }) => ({
        key,
        ...shareIfEqual(max.subarray(from, to), min.subarray(from, to)),
      })),
    };

  // Column c shows steps first[c] to first[c + 1], both included: the last one starts in it and continues.
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
  return { x: columns, curves: curves.map((curve) => reduceCurve(curve, first)) };
}

function reduceCurve({ key, max, min }: UsageCurve, first: Int32Array): UsageCurve {
  const columns = first.length - 1;
  const high = new Float64Array(columns);
  const low = new Float64Array(columns);
  for (let column = 0; column < columns; column++) {
    high[column] = max[first[column]];
    low[column] = min[first[column]];
    for (let step = first[column] + 1; step <= first[column + 1]; step++) {
      // If a pixel is partly unknown, the known part is shown.
      if (max[step] > high[column] || Number.isNaN(high[column])) high[column] = max[step];
      if (min[step] < low[column] || Number.isNaN(low[column])) low[column] = min[step];
    }
  }
  return { key, ...shareIfEqual(high, low) };
}

function shareIfEqual(max: Float64Array, min: Float64Array): { max: Float64Array; min: Float64Array } {
  return { max, min: max.every((value, i) => value === min[i]) ? max : min };
}
