import { formatBytes, formatCount } from "../../base/units";
import { type Axis, byteTicks, labelCenter, type Span } from "../../layout/axis";
import type { UsageSeries } from "../../layout/usage/usage_series";
import type { FirstView } from "../../payload/recording/recording";
import { escapeXml } from "../../render/painter/picture";
import type { Terms } from "../data/terms";
import { type LegendEntry, type Picture, withLightTheme } from "../drawing/picture";
import { GUTTER_LEFT, GUTTER_RIGHT } from "../drawing/surface";
import { curveLabels, curveStyle, DASHES } from "./curves";

const AXIS_HEIGHT = 24;
const TOP = 14;

interface DrawnUsage {
  view: FirstView;
  /** Visible steps, one for each pixel at most. */
  series: UsageSeries;
  axis: Axis;
  /** Visible ranges of the x axis and of bytes. */
  window: Span;
  bytes: Span;
  /** Constant lines, if they are shown. */
  ceiling: number | null;
  limit: number | null;
  position: number;
  terms: Terms;
  width: number;
  height: number;
}

/** Draw the visible part of the usage chart for a file, in the colors of the light theme. */
export function drawUsage(chart: DrawnUsage): Picture {
  const { view, series, axis, window, bytes, width, height, terms } = chart;
  const color = lightColors();
  const plot = { width: width - GUTTER_LEFT - GUTTER_RIGHT, height: height - AXIS_HEIGHT - TOP };
  const x = (value: number): number => round(((value - window[0]) / (window[1] - window[0])) * plot.width);
  const y = (value: number): number =>
    round(plot.height - ((value - bytes[0]) / (bytes[1] - bytes[0])) * plot.height);
  const share = (value: number): number => round(plot.height * (1 - value));
  const across = (at: number, stroke: string, dash: string): string =>
    `<path d="M0 ${y(at)}h${plot.width}" stroke="${stroke}" stroke-width="1.2"${dash}/>`;
  const legend: LegendEntry[] = [];
  const curves: string[] = [];
  for (const { key, max, min } of series.curves) {
    const { color: named, dash, width: stroke } = curveStyle(key, false);
    const paint = color(named);
    const line = (column: Float64Array): string =>
      steps(series.x, column, x, key === "fragmentation" ? share : y, plot.width);
    const dashes = dashArray(DASHES[dash]);
    if (key === "live")
      curves.push(`<path d="${area(series.x, max, x, y, plot)}" fill="${paint}" fill-opacity=".13"/>`);
    if (max !== min)
      curves.push(`<path d="${line(min)}" stroke="${paint}" stroke-opacity=".4" fill="none"${dashes}/>`);
    curves.push(`<path d="${line(max)}" stroke="${paint}" stroke-width="${stroke}" fill="none"${dashes}/>`);
    legend.push({ color: paint, label: curveLabels(key, terms, view)[0], line: true });
  }
  for (const key of ["ceiling", "limit"] as const) {
    const bytesAt = chart[key];
    if (bytesAt === null) continue;
    const { color: named, dash } = curveStyle(key, false);
    curves.push(across(bytesAt, color(named), dashArray(DASHES[dash])));
    legend.push({ color: color(named), label: curveLabels(key, terms, view)[0], line: true });
  }
  const markAt = (position: number, stroke: string, text: string): string =>
    mark(x(axis.mark(position)), plot, stroke, text);
  const peak = `peak ${formatBytes(view.recording.peak_bytes)}`;
  const marks = [
    markAt(chart.position, color("--ink"), `${terms.position} ${formatCount(chart.position)}`),
    chart.position === view.peak ? "" : markAt(view.peak, color("--muted"), peak),
  ];
  return {
    width,
    height,
    legend,
    shapes: [
      `<defs><clipPath id="plot"><rect width="${plot.width}" height="${plot.height}"/></clipPath></defs>`,
      `<g transform="translate(${GUTTER_LEFT} ${TOP})" font-size="11">`,
      ...ticks(chart, plot, x, y, color),
      '<g clip-path="url(#plot)">',
      ...curves,
      "</g>",
      ...marks,
      "</g>",
    ],
  };
}

/** Upper bound of a letter's width at 11 px. */
const LETTER = 6.5;

interface PlotSize {
  width: number;
  height: number;
}
type Pixel = (value: number) => number;

function ticks(
  { axis, window, bytes }: DrawnUsage,
  plot: PlotSize,
  x: Pixel,
  y: Pixel,
  color: (name: string) => string,
): string[] {
  const chartWidth = GUTTER_LEFT + plot.width + GUTTER_RIGHT;
  const [grid, muted] = [color("--line"), color("--muted")];
  return [
    ...byteTicks(bytes, plot.height / 36).flatMap(({ value, label }) => [
      `<path d="M0 ${y(value)}h${plot.width}" stroke="${grid}"/>`,
      `<text x="-7" y="${y(value) + 4}" text-anchor="end" fill="${muted}">${escapeXml(label)}</text>`,
    ]),
    ...axis.ticks(window, plot.width / 110).flatMap(({ value, label }) => {
      const center = labelCenter(GUTTER_LEFT + x(value), LETTER * label.length, chartWidth) - GUTTER_LEFT;
      const look = `text-anchor="middle" fill="${muted}"`;
      return [
        `<path d="M${x(value)} 0v${plot.height}" stroke="${grid}"/>`,
        `<text x="${center}" y="${plot.height + 16}" ${look}>${escapeXml(label)}</text>`,
      ];
    }),
  ];
}

/** A vertical line with a text beside it, on the side with room. */
function mark(x: number, { width, height }: PlotSize, color: string, text: string): string {
  if (x < 0 || x > width) return "";
  const side = x > width - 110 ? `x="${x - 4}" text-anchor="end"` : `x="${x + 4}"`;
  return (
    `<path d="M${x} 0v${height}" stroke="${color}" stroke-dasharray="3 3"/>` +
    `<text ${side} y="-3" fill="${color}">${escapeXml(text)}</text>`
  );
}

/** Return a path in which each value applies from its x to the next one. Unknown values are gaps. */
function steps(xs: Float64Array, values: Float64Array, x: Pixel, y: Pixel, end: number): string {
  let path = "";
  let drawing = false;
  for (let i = 0; i < xs.length; i++) {
    if (Number.isNaN(values[i])) {
      drawing = false;
      continue;
    }
    const to = i + 1 < xs.length ? x(xs[i + 1]) : end;
    path += drawing ? `V${y(values[i])}H${to}` : `M${x(xs[i])} ${y(values[i])}H${to}`;
    drawing = true;
  }
  return path;
}

function area(xs: Float64Array, values: Float64Array, x: Pixel, y: Pixel, plot: PlotSize): string {
  const known = values.map((value) => (Number.isNaN(value) ? 0 : value));
  const line = steps(xs, known, x, y, plot.width);
  return xs.length === 0 ? "" : `${line}V${plot.height}H${x(xs[0])}Z`;
}

function dashArray(dash: readonly number[]): string {
  return dash.length === 0 ? "" : ` stroke-dasharray="${dash.join(" ")}"`;
}

/** Return a function that reads a CSS variable of the light theme, or returns a color as it is. */
function lightColors(): (name: string) => string {
  const names = ["--accent", "--muted", "--ink", "--warn", "--line"];
  const known = withLightTheme(document.body, (holder) => {
    const style = getComputedStyle(holder);
    return new Map(names.map((name) => [name, style.getPropertyValue(name).trim()]));
  });
  return (name) => known.get(name) ?? name;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
