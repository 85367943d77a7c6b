import type { JSX } from "preact";
import { useContext, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import "./locale";
import uPlot from "uplot";
import { formatBytes, formatCount } from "../../base/units";
import { type Axis, MIN_POSITIONS, restoreSpan, type Span } from "../../layout/axis";
import { bytesOver } from "../../layout/usage/live_set";
import {
  byteRange,
  type CurveKey,
  finerWindow,
  reduceToPixels,
  shownCurves,
  usageSeries,
} from "../../layout/usage/usage_series";
import type { Api } from "../../payload/api";
import type { Summary } from "../../payload/generated/answers";
import type { FirstView, Spans, Usage } from "../../payload/recording/recording";
import { useSize } from "../browser/hooks";
import { axisTitle, useTerms } from "../data/terms";
import { useFetched } from "../data/use_fetched";
import type { Picture } from "../drawing/picture";
import { SavePicture } from "../drawing/save_picture";
import { GUTTER_LEFT, GUTTER_RIGHT, pageColors } from "../drawing/surface";
import type { LiveProps } from "../page/live_rows";
import { RowFilterContext } from "../page/row_filter";
import { useDark } from "../state/theme";
import { store, usePosition, useViewState } from "../state/view_state";
import { AxisChoice, RangeChoice } from "../widgets/choice";
import { NO_AXIS_HEIGHT, TOP, usageColumns, usageOptions, X_AXIS_HEIGHT } from "./chart_options";
import { CurveLegend, useCurves } from "./curves";
import { bindPointer, onKey, startsBrush } from "./gestures";
import { drawMarks } from "./marks";
import { SnapshotMarks } from "./snapshot_marks";
import { SpanLanes } from "./span_lanes";
import { drawUsage } from "./usage_drawing";

/** Buckets per request: twice the pixels of a wide chart, over up to eight times the visible range. */
const BUCKETS = 8192;

interface WindowedUsage {
  usage: Usage;
  end: number;
}

/** Return the usage to draw: of the whole axis, or at a finer resolution for the visible range. */
function useUsage(api: Api, view: FirstView, zoom: Span): WindowedUsage {
  const { id } = view.recording;
  const finer = finerWindow(zoom, view.length, view.usage.length);
  // The length changes while a job runs.
  const key = finer === null ? null : `${id} ${finer[0]} ${finer[1]} ${view.length}`;
  const fetched = useFetched(key, async (_, signal) => {
    const [from, to] = finer ?? [0, view.length];
    return { id, from, end: to, usage: await api.usage({ id, from, to, buckets: BUCKETS }, signal) };
  });
  // Until a new range has loaded, the previous one is still finer where it applies.
  const last = useRef(fetched.value);
  if (fetched.value !== null) last.current = fetched.value;
  const fits =
    finer !== null &&
    last.current !== null &&
    last.current.id === id &&
    last.current.from <= zoom[0] &&
    last.current.end >= zoom[1];
  return fits && last.current !== null ? last.current : { usage: view.usage, end: view.length };
}

/** Height of a saved picture where the chart is low. */
const MIN_PICTURE_HEIGHT = 220;

interface Props extends Pick<UsageSectionProps, "api" | "view" | "axis" | "available" | "snapshots"> {
  /** A timeline below has the x axis. */
  above: boolean;
  /** Available curves. */
  known: readonly CurveKey[];
  /** Set to a function that draws the chart for a file. */
  picture: { current: () => Picture | null };
}

/** Live bytes over the axis, with the peak. */
function UsageChart({ api, view, axis, above, known, available, snapshots = [], picture }: Props) {
  const dark = useDark();
  const host = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const { width, height } = useSize(host);
  const zoom = useViewState((state) => state.zoom);
  const position = usePosition(view);
  const selected = available.indexOf(useViewState((state) => state.selected));
  const hovered = available.indexOf(useViewState((state) => state.hovered));
  const terms = useTerms();
  const range = useViewState((state) => state.usage_range);
  const selectedRange = useViewState((state) => state.range);
  const savedBytes = useViewState((state) => state.usage_zoom);
  const title = above ? "" : axisTitle(terms, axis);

  const window = axis.fromSaved(zoom);
  const positions: Span = [axis.positionAt(window[0]), axis.positionAt(window[1])];
  const { usage, end } = useUsage(api, view, positions);
  const switched = useViewState((state) => state.toggled_curves);
  const drawn = useMemo(() => shownCurves(known, switched), [known, switched]);
  const whole = useMemo(() => usageSeries(view.usage, view.length, axis, drawn), [view, axis, drawn]);
  const series = useMemo(
    () => (usage === view.usage ? whole : usageSeries(usage, end, axis, drawn)),
    [whole, usage, end],
  );
  const plotWidth = Math.max(width - GUTTER_LEFT - GUTTER_RIGHT, 1);
  const visible = useMemo(
    () => reduceToPixels(series, window, plotWidth * devicePixelRatio),
    [series, window[0], window[1], plotWidth],
  );
  const columns = useMemo(() => usageColumns(visible) as uPlot.AlignedData, [visible]);
  // The ceiling: capacity for an allocator, reserved memory for a program.
  const { axis: kind, capacity_bytes, reserved_bytes, peak_bytes } = view.recording;
  const events = kind === "TIME";
  const ceiling = !drawn.includes("ceiling") ? null : events ? capacity_bytes : reserved_bytes;
  const most = drawn.includes("limit") ? capacity_bytes : null;
  const limit = byteRange(
    events ? range : "capacity",
    range === "fit" ? series : whole,
    window,
    peak_bytes,
    events ? capacity_bytes : Math.max(ceiling ?? 0, most ?? 0),
  );
  const bytes = restoreSpan(savedBytes, limit);
  const only = useContext(RowFilterContext).rows;
  const part = useMemo(
    () => (only === null || !available.complete ? null : bytesOver(available.rows, view.length, only)),
    [only, available, view],
  );
  const marks = {
    series: visible,
    part,
    peak: view.peak,
    peakBytes: view.recording.peak_bytes,
    position,
    range: selectedRange,
    ceiling,
    limit: most,
    rows: available.rows,
    axis,
    selected,
    hovered,
    dark,
  };
  picture.current = () =>
    width === 0
      ? null
      : drawUsage({
          ...{ view, series: visible, axis, window, bytes, ceiling, limit: most, position, terms, width },
          height: Math.max(height, MIN_PICTURE_HEIGHT),
        });
  const curves = series.curves.map(({ key }) => key).join();
  // The chart outlives a render, so its callbacks read current values from here.
  const shown = { axis, limit, length: view.length, peak: view.peak };
  const current = useRef({ marks, columns, shown });
  current.current = { marks, columns, shown };

  useLayoutEffect(() => {
    const node = host.current;
    if (node === null || width === 0) return;
    const colors = pageColors();
    const plot = new uPlot(
      usageOptions(
        {
          width,
          height,
          axis: () => current.current.shown.axis,
          title,
          live: terms.live,
          window,
          bytes,
          shown: series.curves.map(({ key }) => key),
          dark,
          stepped: uPlot.paths.stepped?.({ align: 1 }) ?? (() => null),
          draw: (plotted) => drawMarks(plotted, current.current.marks, colors),
          onCursor: (plotted) => {
            const { left = -1 } = plotted.cursor;
            const { axis } = current.current.shown;
            const pointed = left < 0 ? null : Math.floor(axis.positionAt(plotted.posToVal(left, "x")));
            if (pointed !== store.get().pointed) store.set({ pointed });
          },
          brushes: (event) => startsBrush(event),
          onBrush: (from, to) => {
            const { axis } = current.current.shown;
            const middle = (from + to) / 2;
            const half = Math.max(to - from, MIN_POSITIONS) / 2;
            const [least, most] = axis.extent;
            store.set({
              zoom: axis.toSaved([Math.max(middle - half, least), Math.min(middle + half, most)]),
            });
          },
        },
        colors,
      ),
      current.current.columns,
      node,
    );
    chart.current = plot;
    const unbind = bindPointer(plot, () => current.current.shown);
    return () => {
      unbind();
      plot.destroy();
      chart.current = null;
    };
    // Of a running job the view and its axis change, and a drag goes on.
  }, [width > 0, dark, curves, title]);

  useLayoutEffect(() => {
    if (width > 0) chart.current?.setSize({ width, height });
  }, [width, height]);
  useLayoutEffect(() => {
    chart.current?.setData(columns, false);
    chart.current?.setScale("x", { min: window[0], max: window[1] });
  }, [columns, axis]);
  useLayoutEffect(() => {
    chart.current?.setScale("y", { min: bytes[0], max: bytes[1] });
  }, [bytes[0], bytes[1]]);
  useLayoutEffect(() => {
    chart.current?.redraw(false);
  }, [position, selectedRange, selected, hovered, view, available, part]);

  return (
    <div
      class="usage-chart"
      data-testid="usage-chart"
      tabindex={0}
      role="application"
      aria-label={
        `Bytes ${terms.live} over ${formatCount(view.length)} ${terms.positions} of the ${terms.extent}, ` +
        `at most ${formatBytes(peak_bytes)} at ${terms.position} ${formatCount(view.peak)}. ` +
        `Arrow keys move the inspected ${terms.position}.`
      }
      onKeyDown={(event) => event.target === event.currentTarget && onKey(event, shown)}
    >
      <div ref={host} class="fill" />
      {width > 0 && view.recording.time_ns !== null && axis.clock !== null && (
        <SnapshotMarks
          {...{ snapshots, series, axis, window, bytes }}
          beganNs={view.recording.time_ns}
          plot={{
            width: plotWidth,
            top: TOP,
            height: height - TOP - (above ? NO_AXIS_HEIGHT : X_AXIS_HEIGHT),
          }}
        />
      )}
    </div>
  );
}

interface UsageSectionProps extends LiveProps {
  api: Api;
  spans: Spans | null;
  axis: Axis;
  /** Snapshots of the same memory, in order of time. */
  snapshots?: readonly Summary[] | undefined;
  /** The timeline, directly below the usage chart because it shares its x axis. */
  children: JSX.Element | null;
}

/** Charts along the x axis in one frame: toolbar, spans, usage chart and timeline. */
export function UsageSection(props: UsageSectionProps) {
  const { api, view, available, program, spans, axis, snapshots, children } = props;
  const terms = useTerms();
  const { axis: kind, kind: source, title, memory } = view.recording;
  const known = useCurves(view);
  const picture = useRef<() => Picture | null>(() => null);
  // Samples of a job come at equal intervals, except where older ones were dropped.
  const hasClock = kind === "TIME" && source !== "watch" && (program === null || program.time_ns !== null);
  return (
    <section
      class={children === null ? "frame curve-only" : "frame"}
      aria-label={`Memory over the ${terms.extent}`}
      data-testid="frame"
    >
      <header class="frame-head">
        <CurveLegend view={view} known={known} />
        {(hasClock || source === "program") && <AxisChoice program={kind !== "TIME"} />}
        {kind === "TIME" && <RangeChoice capacity={known.includes("ceiling")} />}
        <SavePicture of="usage chart" fileName={`${title}-${memory}-usage`} draw={() => picture.current()} />
      </header>
      <div class={kind === "TIME" && source !== "watch" ? "frame-lanes timed" : "frame-lanes"}>
        {spans !== null && program?.time_ns != null && (
          <SpanLanes spans={spans} times={program.time_ns} axis={axis} />
        )}
      </div>
      <UsageChart {...{ api, view, axis, known, available, snapshots, picture }} above={children !== null} />
      {children}
    </section>
  );
}
