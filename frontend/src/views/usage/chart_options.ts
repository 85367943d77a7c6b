import type uPlot from "uplot";
import { type Axis, byteTicks, labelCenter, type Span } from "../../layout/axis";
import type { CurveKey, UsageSeries } from "../../layout/usage/usage_series";
import { CHART_FONT, drawSideTitle, GUTTER_LEFT, GUTTER_RIGHT, type PageColors } from "../drawing/surface";
import { curveStyle, DASHES } from "./curves";

/** Heights of the x axis: with ticks and a title, and where a timeline below has them. */
export const X_AXIS_HEIGHT = 36;
export const NO_AXIS_HEIGHT = 8;
export const TOP = 8;
const X_LABEL_GAP = 4;
const X_TITLE_GAP = 18;

interface Parts {
  width: number;
  height: number;
  /** The x axis, which changes while a job runs. */
  axis: () => Axis;
  /** Title of the x axis; empty where a timeline below has the axis. */
  title: string;
  /** Title of the y axis. */
  live: string;
  /** Visible ranges of the x axis and of bytes. */
  window: Span;
  bytes: Span;
  /** Curves shown, with their colors. */
  shown: readonly CurveKey[];
  dark: boolean;
  stepped: uPlot.Series.PathBuilder;
  draw: (chart: uPlot) => void;
  onCursor: (chart: uPlot) => void;
  /** Return true if a drag selects a range, false if it pans. */
  brushes: (event: MouseEvent) => boolean;
  onBrush: (from: number, to: number) => void;
}

/** Series in the order of usageColumns. */
export function usageOptions(parts: Parts, colors: PageColors): uPlot.Options {
  const axis = {
    stroke: colors.muted,
    grid: { stroke: colors.grid, width: 1 },
    ticks: { show: false },
    font: CHART_FONT,
  };
  return {
    width: parts.width,
    height: parts.height,
    padding: [TOP, GUTTER_RIGHT, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      points: { show: false },
      drag: { x: true, y: false, setScale: false, dist: 4 },
      bind: {
        mousedown: (_chart, _target, handler) => (event) => {
          if (event.button === 0 && parts.brushes(event)) handler(event);
          return null;
        },
        dblclick: () => () => null,
      },
    },
    scales: {
      x: { time: false, auto: false, min: parts.window[0], max: parts.window[1] },
      y: { auto: false, min: parts.bytes[0], max: parts.bytes[1] },
      // Shares run from 0 at the bottom to 1 at the top.
      share: { auto: false, min: 0, max: 1 },
    },
    axes: [
      {
        ...axis,
        size: parts.title === "" ? NO_AXIS_HEIGHT : X_AXIS_HEIGHT,
        gap: 2,
        splits: (chart, _axis, min, max) =>
          parts
            .axis()
            .ticks([min, max], chart.width / 110)
            .map((tick) => tick.value),
        // drawXLabels draws them: uPlot would cut the last one off.
        values: (_chart, splits) => splits.map(() => ""),
      },
      {
        ...axis,
        size: GUTTER_LEFT,
        gap: 6,
        splits: (chart, _axis, min, max) =>
          byteTicks([min, max], chart.height / 28).map((tick) => tick.value),
        values: (chart, splits) => {
          const { min = 0, max = 1 } = chart.scales["y"] ?? {};
          const ticks = byteTicks([min, max], chart.height / 28);
          return splits.map((split) => ticks.find(({ value }) => value === split)?.label ?? "");
        },
      },
    ],
    series: [{}, ...parts.shown.flatMap((key) => curveSeries(key, parts))],
    hooks: {
      drawAxes: [(chart) => drawLabels(chart, parts, axis)],
      draw: [parts.draw],
      setCursor: [parts.onCursor],
      setSelect: [
        (chart) => {
          const { left, width } = chart.select;
          if (width > 3) parts.onBrush(chart.posToVal(left, "x"), chart.posToVal(left + width, "x"));
          chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
    },
  };
}

/** Draw the titles of the axes, and the labels of the x axis, within the chart. */
function drawLabels(chart: uPlot, parts: Parts, look: { stroke: string; font: string }): void {
  const { ctx, bbox, scales } = chart;
  const { min = 0, max = 1 } = scales["x"] ?? {};
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.scale(ratio, ratio);
  ctx.font = look.font;
  ctx.fillStyle = look.stroke;
  ctx.textAlign = "center";
  ctx.textBaseline = "top";
  const [top, height] = [bbox.top / ratio, bbox.height / ratio];
  drawSideTitle(ctx, parts.live, top + height / 2);
  const labels = parts.title === "" ? [] : parts.axis().ticks([min, max], chart.width / 110);
  for (const { value, label } of labels) {
    const x = chart.valToPos(value, "x", true) / ratio;
    const center = labelCenter(x, ctx.measureText(label).width, chart.width);
    ctx.fillText(label, center, top + height + X_LABEL_GAP);
  }
  ctx.fillText(parts.title, (bbox.left + bbox.width / 2) / ratio, top + height + X_TITLE_GAP);
  ctx.restore();
}

/** Return the columns of a chart: x, then the maximum of each curve. */
export function usageColumns({ x, curves }: UsageSeries): Float64Array[] {
  return [x, ...curves.map(({ max }) => max)];
}

/** Return the CSS color of a curve. */
export function strokeOf(key: CurveKey, dark: boolean): string {
  const { color } = curveStyle(key, dark);
  return color.startsWith("--")
    ? getComputedStyle(document.documentElement).getPropertyValue(color).trim()
    : color;
}

/** The line of a curve is its maximum; marks.ts draws the range down to its minimum. */
function curveSeries(key: CurveKey, { stepped, dark }: Parts): uPlot.Series[] {
  if (key === "ceiling" || key === "limit") return [];
  const { dash, width } = curveStyle(key, dark);
  const stroke = strokeOf(key, dark);
  return [
    {
      scale: scaleOf(key),
      points: { show: false },
      dash: [...DASHES[dash]],
      paths: stepped,
      stroke,
      width,
      ...(key === "live" ? { fill: `${stroke}22` } : {}),
    },
  ];
}

/** Return the y scale of a curve. */
export function scaleOf(key: CurveKey): "share" | "y" {
  return key === "fragmentation" ? "share" : "y";
}
