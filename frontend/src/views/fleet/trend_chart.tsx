import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { onPress } from "../../base/input";
import { formatBytes, formatCounted, formatSigned } from "../../base/units";
import { labelCenter, nearestMark } from "../../layout/axis";
import { placeLabels, type TrendChart, trendChart, type TrendMark } from "../../layout/fleet/trend";
import type { TrendPoint, TrendSeries } from "../../payload/generated/answers";
import type { TrendBy } from "../../payload/generated/constants";
import { useFullWindow } from "../browser/full_window";
import { useWidth } from "../browser/hooks";
import { ByteAxis } from "../drawing/byte_axis";
import { Tooltip } from "../widgets/tooltip";

/** Return the name of a point: its day, or its capture. */
export function pointName(point: TrendPoint, by: TrendBy): string {
  return by === "day" ? point.day : point.capture;
}

/** Return what raised the peak, and by how much; empty for a point without a rise. */
function riseText({ rise_bytes: rise, because }: TrendPoint): string {
  return because === null ? "" : `${formatSigned(rise)}: ${because}`;
}

/** Return the name of the upper line. */
export function upperName({ is_program: isProgram }: TrendSeries): string {
  return isProgram ? "reserved" : "worst device";
}

/** Return a point in words. */
function pointSentence(series: TrendSeries, point: TrendPoint, by: TrendBy): string {
  const of = formatCounted(point.count, series.is_program ? "host" : "device");
  const raised = point.because === null ? "" : `, ${riseText(point)}`;
  return `${pointName(point, by)}: ${formatBytes(point.peak_bytes)} on ${of}${raised}`;
}

/** Return what a click on a point does. */
function actionText({ because }: TrendPoint, by: TrendBy): string {
  return because === null ? "Open it" : `Compare with the ${by} before`;
}

const HEIGHT = 260;
/** Height around the chart in the full window. */
const AROUND = 40;
const LEFT = 76;
const RIGHT = 24;
const BOTTOM = 26;
const FIRST_LANE = 10;
const LANE = 16;
const MAX_LANES = 3;
const REACH = 28;
const TICK_WIDTHS = { day: 84, capture: 180 };

const LABEL_WIDTHS = { day: 62, capture: 124 };
/** Closer marks are a line: only rises are drawn. */
const LEAST_SPACING = 7;

interface Props {
  series: TrendSeries;
  by: TrendBy;
  pointed: number | null;
  onPoint: (point: number | null) => void;
  onOpen: (point: number) => void;
}

/** Peaks over time, with what raised them. */
export function TrendDrawing({ series, by, pointed, onPoint, onOpen }: Props) {
  const height = useFullWindow() ? window.innerHeight - AROUND : HEIGHT;
  const place = useRef<HTMLDivElement>(null);
  const width = useWidth(place);
  const [focused, setFocused] = useState<number | null>(null);
  const plotWidth = Math.max(width - LEFT - RIGHT, 1);
  const chart = useMemo(
    () => trendChart(series, by, Math.floor(plotWidth / TICK_WIDTHS[by])),
    [series, by, plotWidth],
  );
  const labels = useMemo(
    () => placeLabels(chart, series, riseText, plotWidth, MAX_LANES),
    [chart, series, plotWidth],
  );
  const lanes = Math.max(0, ...labels.map(({ lane }) => lane + 1));
  const top = FIRST_LANE + lanes * LANE;
  const plot = { width: plotWidth, height: height - top - BOTTOM };
  const x = (share: number): number => LEFT + share * plot.width;
  const y = (share: number): number => top + (1 - share) * plot.height;
  const lines = useMemo(
    () => ({ upper: line(chart, ({ upper }) => upper, x, y), peak: line(chart, (mark) => mark.y, x, y) }),
    [chart, top, height],
  );
  const stop = Math.min(focused ?? series.points.length - 1, series.points.length - 1);
  // Before the next key: Enter opens what has the focus.
  useLayoutEffect(() => {
    // The mark of a dense line exists only while it has the focus.
    if (focused !== null) place.current?.querySelector<SVGElement>(`[data-point="${focused}"]`)?.focus();
  }, [focused]);
  const near = (event: MouseEvent & { currentTarget: SVGSVGElement }): TrendMark | null => {
    const box = event.currentTarget.getBoundingClientRect();
    const at = { x: event.clientX - box.left - LEFT, y: event.clientY - box.top - top };
    return nearestMark(chart.marks, at, plot, REACH);
  };
  const dense = series.points.length > plot.width / LEAST_SPACING;
  const drawn = chart.marks.filter(
    ({ point, isRise }) => !dense || isRise || point === stop || point === pointed,
  );
  const shown = pointed === null ? null : chart.marks[pointed];
  return (
    <div ref={place} class="fleet-trend-chart">
      <svg
        width={width}
        height={height}
        role="group"
        aria-label={`Peak of ${series.name} over time`}
        class={pointed === null ? "" : "pointing"}
        onMouseMove={(event) => onPoint(near(event)?.point ?? null)}
        onMouseLeave={() => onPoint(null)}
        onClick={(event) => {
          const found = near(event);
          if (found !== null) onOpen(found.point);
        }}
        onKeyDown={(event) => {
          const next = step(series.points, stop, event.key);
          if (next === null) return;
          event.preventDefault();
          setFocused(next);
        }}
      >
        <Axes {...{ chart, by, x, y, top, plot, width }} />
        <polyline class="upper" points={lines.upper} />
        <polyline class="peak" points={lines.peak} />
        {labels.map(({ point, lane }) => (
          <g key={point} class="rise-label" aria-hidden="true">
            <line
              x1={x(chart.marks[point].x)}
              x2={x(chart.marks[point].x)}
              y1={FIRST_LANE + lane * LANE + 4}
              y2={y(chart.marks[point].y) - 7}
            />
          </g>
        ))}
        {labels.map(({ point, text, x: at, anchor, lane }) => (
          <g key={point} class="rise-label" data-testid="trend-rise-label">
            <text x={LEFT + at} y={FIRST_LANE + lane * LANE} text-anchor={anchor}>
              <title>{riseText(series.points[point])}</title>
              {text}
            </text>
          </g>
        ))}
        {drawn.map((mark) => (
          <Mark
            key={mark.point}
            {...{ mark, x, y, series, by, onOpen }}
            isPointed={mark.point === pointed}
            isStop={mark.point === stop}
            onFocus={() => setFocused(mark.point)}
          />
        ))}
      </svg>
      {shown !== null && pointed !== null && (
        <Tooltip x={x(shown.x)} y={y(shown.y)} width={width}>
          <PointTooltip {...{ series, by }} point={series.points[pointed]} />
        </Tooltip>
      )}
    </div>
  );
}

interface MarkProps {
  mark: TrendMark;
  x: (share: number) => number;
  y: (share: number) => number;
  series: TrendSeries;
  by: TrendBy;
  isPointed: boolean;
  isStop: boolean;
  onFocus: () => void;
  onOpen: (point: number) => void;
}

function Mark({ mark, x, y, series, by, isPointed, isStop, onFocus, onOpen }: MarkProps) {
  const point = series.points[mark.point];
  return (
    <g
      class={`trend-point ${mark.isRise ? "rise" : ""} ${isPointed ? "pointed" : ""}`}
      role="button"
      tabindex={isStop ? 0 : -1}
      aria-label={`${pointSentence(series, point, by)}. ${actionText(point, by)}`}
      data-testid={mark.isRise ? "trend-rise" : "trend-point"}
      data-point={mark.point}
      onFocus={onFocus}
      onKeyDown={onPress(() => onOpen(mark.point))}
    >
      {mark.isRise ? (
        <path d={`M${x(mark.x)} ${y(mark.y) - 6} l6 10 h-12 z`} />
      ) : (
        <circle cx={x(mark.x)} cy={y(mark.y)} r={3.5} />
      )}
    </g>
  );
}

/** Arrow keys go along the points, up and down to the rises. */
function step(points: readonly TrendPoint[], from: number, key: string): number | null {
  const rises = points.flatMap(({ because }, i) => (because === null ? [] : [i]));
  const next = {
    ArrowRight: from + 1,
    ArrowLeft: from - 1,
    Home: 0,
    End: points.length - 1,
    ArrowUp: rises.find((i) => i > from),
    ArrowDown: rises.findLast((i) => i < from),
  }[key];
  return next !== undefined && next in points ? next : null;
}

function line(
  { marks }: TrendChart,
  of: (mark: TrendMark) => number,
  x: MarkProps["x"],
  y: MarkProps["y"],
): string {
  return marks.map((mark) => `${x(mark.x)},${y(of(mark))}`).join(" ");
}

interface AxesProps extends Pick<MarkProps, "x" | "y" | "by"> {
  chart: TrendChart;
  top: number;
  plot: { width: number; height: number };
  width: number;
}

function Axes({ chart, by, x, y, top, plot, width }: AxesProps) {
  const [low, high] = chart.span;
  return (
    <>
      <ByteAxis
        ticks={chart.bytes}
        left={LEFT}
        right={width - RIGHT}
        y={(bytes) => y((bytes - low) / (high - low))}
      />
      {chart.times.map(({ x: share, label }) => (
        <g key={share} class="tick">
          <line x1={x(share)} x2={x(share)} y1={top + plot.height} y2={top + plot.height + 4} />
          <text
            x={labelCenter(x(share), LABEL_WIDTHS[by], width)}
            y={top + plot.height + BOTTOM - 8}
            text-anchor="middle"
          >
            {label}
          </text>
        </g>
      ))}
    </>
  );
}

function PointTooltip({ series, by, point }: { series: TrendSeries; by: TrendBy; point: TrendPoint }) {
  return (
    <>
      <strong>{pointName(point, by)}</strong>
      <div>
        {formatBytes(point.peak_bytes)} peak
        {point.largest_bytes >= 0 && ` · ${formatBytes(point.largest_bytes)} ${upperName(series)}`}
      </div>
      {point.because !== null && <div>{riseText(point)}</div>}
      <div class="muted">{actionText(point, by)}</div>
    </>
  );
}
