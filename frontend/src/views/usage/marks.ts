import type uPlot from "uplot";
import { cssColor, rowColors } from "../../base/colors";
import type { Axis, Span } from "../../layout/axis";
import type { UsageSeries } from "../../layout/usage/usage_series";
import type { Rows } from "../../payload/recording/rows";
import { type PageColors, veil } from "../drawing/surface";
import { scaleOf, strokeOf } from "./chart_options";

/** Draw the live bytes that pass the row filter as an area below the curve; each pixel column shows its maximum. */
function drawFilteredArea(chart: uPlot, part: Float64Array, axis: Axis, color: string): void {
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

/** Fill the range between maximum and minimum of each step of a curve, where one step covers several positions. */
function drawRange(chart: uPlot, { x, curves }: UsageSeries, dark: boolean): void {
  const { ctx } = chart;
  for (const { key, max, min } of curves) {
    if (max === min) continue;
    ctx.fillStyle = `${strokeOf(key, dark)}55`;
    for (let step = 0; step + 1 < x.length; step++) {
      if (!(max[step] > min[step])) continue;
      const [left, right] = [chart.valToPos(x[step], "x", true), chart.valToPos(x[step + 1], "x", true)];
      const top = chart.valToPos(max[step], scaleOf(key), true);
      const bottom = chart.valToPos(min[step], scaleOf(key), true);
      ctx.fillRect(left, top, Math.max(right - left, 1), bottom - top);
    }
  }
}

/** Marks over the curve, in positions and bytes; -1 for no buffer. */
interface Marks {
  /** The visible steps of the curves. */
  series: UsageSeries;
  peak: number;
  peakBytes: number;
  position: number;
  /** Selected range of positions. */
  range: Span | null;
  /** An allocator's capacity, or what a program reserves, if its line is shown. */
  ceiling: number | null;
  /** What a program may reserve, if its line is shown. */
  limit: number | null;
  rows: Rows;
  /** Live bytes of the rows that pass the filter, per position; null without a filter. */
  part: Float64Array | null;
  axis: Axis;
  selected: number;
  hovered: number;
  dark: boolean;
}

/** Draw the marks on the chart's canvas, in device pixels. */
export function drawMarks(chart: uPlot, marks: Marks, colors: PageColors): void {
  const { ctx } = chart;
  const { left, top, width, height } = chart.bbox;
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, width, height);
  ctx.clip();
  // uPlot leaves the dash pattern of its last curve set.
  ctx.setLineDash([]);
  drawRange(chart, marks.series, marks.dark);
  if (marks.part !== null) drawFilteredArea(chart, marks.part, marks.axis, colors.accent);
  if (marks.hovered >= 0 && marks.hovered !== marks.selected) drawLife(chart, marks, marks.hovered, 0.25);
  if (marks.selected >= 0) drawLife(chart, marks, marks.selected, 0.55);
  if (marks.ceiling !== null) drawAcross(chart, marks.ceiling, colors.ink, 1, [8, 4]);
  if (marks.limit !== null) drawAcross(chart, marks.limit, colors.warn, 1.5, []);
  if (marks.range !== null) {
    const [from, to] = marks.axis.fromSaved(marks.range).map((value) => chart.valToPos(value, "x", true));
    veil(ctx, [left, left + width], [from, to], [top, top + height], colors);
  }
  drawPosition(chart, marks, colors);
  if (marks.position !== marks.peak) drawPeak(chart, marks, colors);
  ctx.restore();
}

/** Draw a buffer as a block: its lifetime along x, its size from zero along y. */
function drawLife(chart: uPlot, { rows, dark, axis }: Marks, row: number, alpha: number): void {
  const { ctx } = chart;
  const pxRatio = devicePixelRatio;
  const x0 = chart.valToPos(axis.at(rows.start[row]), "x", true);
  const x1 = chart.valToPos(axis.at(rows.end[row]), "x", true);
  const y0 = chart.valToPos(0, "y", true);
  const y1 = chart.valToPos(rows.size[row], "y", true);
  // Short lifetimes and small buffers stay visible.
  const width = Math.max(x1 - x0, 2 * pxRatio);
  const height = Math.max(y0 - y1, 3 * pxRatio);
  const color = cssColor(rowColors(dark)[rows.color[row]]);
  ctx.globalAlpha = alpha;
  ctx.fillStyle = color;
  ctx.fillRect(x0, y0 - height, width, height);
  ctx.globalAlpha = 1;
  ctx.strokeStyle = color;
  ctx.lineWidth = 1.5 * pxRatio;
  ctx.strokeRect(x0, y0 - height, width, height);
}

/** Draw a line across the chart. */
function drawAcross(chart: uPlot, bytes: number, color: string, width: number, dash: number[]): void {
  const { ctx, bbox } = chart;
  const y = Math.round(chart.valToPos(bytes, "y", true)) + 0.5;
  ctx.strokeStyle = color;
  ctx.lineWidth = width * devicePixelRatio;
  ctx.setLineDash(dash.map((length) => length * devicePixelRatio));
  line(ctx, bbox.left, y, bbox.left + bbox.width, y);
  ctx.setLineDash([]);
}

function drawPosition(chart: uPlot, { position, axis }: Marks, colors: PageColors): void {
  const { ctx, bbox } = chart;
  const pxRatio = devicePixelRatio;
  const x0 = chart.valToPos(axis.at(position), "x", true);
  const x1 = chart.valToPos(axis.at(position + 1), "x", true);
  const x = Math.round(chart.valToPos(axis.mark(position), "x", true)) + 0.5;
  if (x1 - x0 > 3) {
    ctx.fillStyle = `${colors.ink}1a`;
    ctx.fillRect(x0, bbox.top, x1 - x0, bbox.height);
  }
  ctx.strokeStyle = colors.ink;
  ctx.lineWidth = 1.5 * pxRatio;
  line(ctx, x, bbox.top, x, bbox.top + bbox.height);
}

/** Draw a small triangle above the curve at the peak. */
function drawPeak(chart: uPlot, { peak, peakBytes, axis }: Marks, colors: PageColors): void {
  const { ctx } = chart;
  const pxRatio = devicePixelRatio;
  const x = chart.valToPos(axis.mark(peak), "x", true);
  const y = chart.valToPos(peakBytes, "y", true) - 2 * pxRatio;
  const size = 5 * pxRatio;
  ctx.fillStyle = colors.ink;
  ctx.beginPath();
  ctx.moveTo(x, y);
  ctx.lineTo(x - size, y - size);
  ctx.lineTo(x + size, y - size);
  ctx.fill();
}

function line(ctx: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number): void {
  ctx.beginPath();
  ctx.moveTo(x0, y0);
  ctx.lineTo(x1, y1);
  ctx.stroke();
}
