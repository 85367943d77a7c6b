import type uPlot from "uplot";
import type { Axis } from "../../layout/axis/axis";

/**
 * Draw the live bytes that pass the row filter as an area below the curve; each pixel column shows its maximum.
 */
export function drawFilteredArea(chart: uPlot, part: Float64Array, axis: Axis, color: string): void {
  const { ctx, bbox, scales } = chart;
  const { min = 0, max = 1 } = scales["x"] ?? {};
  const ground = chart.valToPos(0, "y", true);
  const positionAt = (column: number): number =>
    Math.floor(axis.positionAt(min + (column / bbox.width) * (max - min)));
  ctx.beginPath();
  ctx.moveTo(bbox.left, ground);
  for (let column = 0; column < bbox.width; column++) {
    const y = chart.valToPos(maxIn(part, positionAt(column), positionAt(column + 1)), "y", true);
    ctx.lineTo(bbox.left + column, y);
    ctx.lineTo(bbox.left + column + 1, y);
  }
  ctx.lineTo(bbox.left + bbox.width, ground);
  ctx.fillStyle = `${color}66`;
  ctx.fill();
  ctx.strokeStyle = color;
  ctx.lineWidth = devicePixelRatio;
  ctx.stroke();
}

/** Return the maximum over [from, to), at least that of `from`. */
function maxIn(values: Float64Array, from: number, to: number): number {
  let maximum = values[Math.min(from, values.length - 1)] ?? 0;
  for (let at = from + 1; at < to && at < values.length; at++) maximum = Math.max(maximum, values[at]);
  return maximum;
}
