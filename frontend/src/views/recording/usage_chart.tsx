import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import { formatBytes } from "../../base/units";
import { type Axis, stepAt } from "../../layout/axis";
import { formatTime } from "../../layout/ticks";
import { LEAST_POSITIONS } from "../../layout/timeline_view";
import { explainedBytes, hasStack } from "../../layout/live_set";
import { mostPerStep, rangeOf, type UsageSeries, usageSeries } from "../../layout/usage_series";
import type { Span } from "../../layout/timeline_blocks";
import type { Api } from "../../payload/api";
import type { FirstView, Program } from "../../payload/recording";
import type { ViewState } from "../state";
import { useWords } from "../words";
import { useWidth } from "../use_width";
import type { Shown } from "./shown";
import { Tooltip } from "./tooltip";
import { usePosition } from "./use_position";
import { useUsage } from "./use_usage";
import { bindPointer, brushes, onKey } from "./usage_gestures";
import { drawMarks } from "./usage_marks";
import { GUTTER_LEFT, pageColours, usageOptions } from "./usage_options";

const HEIGHT = 220;

interface Props {
  api: Api;
  view: FirstView;
  program: Program | null;
  axis: Axis;
  shown: Shown;
  store: Store<ViewState>;
  dark: boolean;
}

/** Live bytes along the schedule: where the memory goes over the program, and where the peak is. */
export function UsageChart({ api, view, program, axis, shown, store, dark }: Props): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const width = useWidth(host);
  const zoom = useStore(store, (state) => state.zoom);
  const position = usePosition(store, view);
  const selected = shown.indexOf(useStore(store, (state) => state.selected));
  const hovered = shown.indexOf(useStore(store, (state) => state.hovered));
  const words = useWords();
  const range = useStore(store, (state) => state.range);
  const [cursor, setCursor] = useState<{ x: number; position: number } | null>(null);

  const window = axis.recalled(zoom);
  const positions: Span = [axis.positionAt(window[0]), axis.positionAt(window[1])];
  const { usage, end } = useUsage(api, view, positions);
  // Where there is a stack, the heap alone says more than what was asked for.
  const heap = useMemo(
    () => (hasStack(program) && shown.complete ? explainedBytes(shown.rows, view.length) : null),
    [program, shown, view],
  );
  const series = useMemo((): UsageSeries => {
    const [x, live, least, requested] = usageSeries(usage, end, axis);
    return [x, live, least, heap === null ? requested : mostPerStep(heap, usage, end)];
  }, [usage, end, axis, heap]);
  // What there is at most: an allocator has all the memory, a program what was reserved for it.
  const { kind, capacity_bytes, reserved_bytes, peak_bytes } = view.recording;
  const allocator = kind === "allocator";
  const reserved = allocator ? capacity_bytes : reserved_bytes;
  const bytes = rangeOf(allocator ? range : "capacity", series, window, peak_bytes, reserved);
  const marks = {
    peak: view.peak,
    peakBytes: view.recording.peak_bytes,
    position,
    reserved,
    rows: shown.rows,
    axis,
    selected,
    hovered,
    dark,
  };
  // The chart lives longer than a render: its callbacks find what is current here.
  const current = useRef({ marks, series });
  current.current = { marks, series };

  useLayoutEffect(() => {
    const node = host.current;
    if (node === null || width === 0) return;
    const colours = pageColours();
    const plot = new uPlot(
      usageOptions(
        {
          width,
          height: HEIGHT,
          axis,
          window,
          bytes,
          stepped: uPlot.paths.stepped?.({ align: 1 }) ?? (() => null),
          draw: (drawn) => drawMarks(drawn, current.current.marks, colours),
          onCursor: (drawn) => {
            const { left = -1 } = drawn.cursor;
            setCursor(
              left < 0 ? null : { x: left, position: Math.floor(axis.positionAt(drawn.posToVal(left, "x"))) },
            );
          },
          brushes: (event) => brushes(event, store),
          onBrush: (from, to) => {
            const middle = (from + to) / 2;
            const half = Math.max(to - from, LEAST_POSITIONS) / 2;
            const [least, most] = axis.extent;
            store.set({
              zoom: axis.remembered([Math.max(middle - half, least), Math.min(middle + half, most)]),
            });
          },
        },
        colours,
      ),
      current.current.series,
      node,
    );
    chart.current = plot;
    const unbind = bindPointer(plot, store, axis, view.length, view.peak);
    return () => {
      unbind();
      plot.destroy();
      chart.current = null;
    };
  }, [width > 0, view, axis, dark]);

  useLayoutEffect(() => {
    if (width > 0) chart.current?.setSize({ width, height: HEIGHT });
  }, [width]);
  useLayoutEffect(() => {
    chart.current?.setData(series, false);
    chart.current?.redraw();
  }, [series]);
  useLayoutEffect(() => {
    chart.current?.setScale("x", { min: window[0], max: window[1] });
  }, [window[0], window[1]]);
  useLayoutEffect(() => {
    chart.current?.setScale("y", { min: bytes[0], max: bytes[1] });
  }, [bytes[0], bytes[1]]);
  useLayoutEffect(() => {
    chart.current?.redraw(false);
  }, [position, selected, hovered, shown]);

  return (
    <div
      class="usage-chart"
      data-testid="usage-chart"
      tabindex={0}
      role="application"
      aria-label={`Bytes ${words.live} over ${view.length} ${words.positions} of the ${words.whole}, at most ${formatBytes(peak_bytes)} at ${words.position} ${view.peak}. Arrow keys move the inspected ${words.position}.`}
      style={{ height: `${HEIGHT}px` }}
      onKeyDown={(event) => onKey(event, store, axis, view.length, view.peak)}
    >
      <div ref={host} class="fill" />
      {cursor !== null && cursor.position >= 0 && cursor.position < view.length && (
        <Tooltip x={cursor.x + GUTTER_LEFT} y={92} width={width}>
          <UsageHover
            series={series}
            third={heap === null ? words.requested : "heap"}
            position={cursor.position}
            axis={axis}
            program={program}
          />
        </Tooltip>
      )}
    </div>
  );
}

function UsageHover(props: {
  series: UsageSeries;
  /** What the third curve is. */
  third: string;
  position: number;
  axis: Axis;
  program: Program | null;
}): JSX.Element {
  const [x, live, least, unpadded] = props.series;
  const { position, axis, program, third } = props;
  const words = useWords();
  const step = stepAt(x, axis.at(position));
  const known = program !== null && position < program.length;
  return (
    <>
      <b>{known ? program.name.at(position) : `${words.position} ${position}`}</b>
      {known && program.op_name.at(position) !== "" && <span>{program.op_name.at(position)}</span>}
      <span class="muted">
        {words.position} {position}
        {known && program.computation.at(position) !== "" && ` in ${program.computation.at(position)}`}
        {known && program.time_ns !== null && `, ${formatTime(program.time_ns[position])}`}
      </span>
      <span>
        {words.live} {formatBytes(live[step])}
        {least[step] < live[step] && `, at least ${formatBytes(least[step])} nearby`}
        {unpadded[step] < live[step] && `, ${third} ${formatBytes(unpadded[step])}`}
      </span>
    </>
  );
}
