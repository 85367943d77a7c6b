import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import { formatBytes } from "../../base/units";
import { LEAST_POSITIONS, recalled, remembered } from "../../layout/timeline_view";
import { stepAt, usageSeries } from "../../layout/usage_series";
import type { Api } from "../../payload/api";
import type { FirstView, Program } from "../../payload/recording";
import type { ViewState } from "../state";
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
  shown: Shown;
  store: Store<ViewState>;
  dark: boolean;
}

/** Live bytes along the schedule: where the memory goes over the program, and where the peak is. */
export function UsageChart({ api, view, program, shown, store, dark }: Props): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const width = useWidth(host);
  const zoom = useStore(store, (state) => state.zoom);
  const position = usePosition(store, view);
  const selected = shown.indexOf(useStore(store, (state) => state.selected));
  const hovered = shown.indexOf(useStore(store, (state) => state.hovered));
  const [cursor, setCursor] = useState<{ x: number; position: number } | null>(null);

  const extent = useMemo(() => [0, view.length] as const, [view]);
  const window = recalled(zoom, extent);
  const { usage, end } = useUsage(api, view, window);
  const series = useMemo(() => usageSeries(usage, end), [usage, end]);
  const reserved = view.recording.reserved_bytes;
  const marks = {
    peak: view.peak,
    peakBytes: view.recording.peak_bytes,
    position,
    reserved,
    rows: shown.rows,
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
          window,
          // A little air, so that the line of what is reserved does not lie on the edge.
          top: Math.max(reserved ?? 0, view.recording.peak_bytes, 1) * 1.06,
          stepped: uPlot.paths.stepped?.({ align: 1 }) ?? (() => null),
          draw: (drawn) => drawMarks(drawn, current.current.marks, colours),
          onCursor: (drawn) => {
            const { left = -1 } = drawn.cursor;
            setCursor(left < 0 ? null : { x: left, position: Math.floor(drawn.posToVal(left, "x")) });
          },
          brushes: (event) => brushes(event, store),
          onBrush: (from, to) => {
            const middle = (from + to) / 2;
            const half = Math.max(to - from, LEAST_POSITIONS) / 2;
            store.set({ zoom: remembered(recalled([middle - half, middle + half], extent), extent) });
          },
        },
        colours,
      ),
      current.current.series,
      node,
    );
    chart.current = plot;
    const unbind = bindPointer(plot, store, extent, view.peak);
    return () => {
      unbind();
      plot.destroy();
      chart.current = null;
    };
  }, [width > 0, view, dark]);

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
    chart.current?.redraw(false);
  }, [position, selected, hovered, shown]);

  return (
    <div
      class="usage-chart"
      data-testid="usage-chart"
      tabindex={0}
      role="application"
      aria-label={`Live bytes over ${view.length} positions of the schedule, at most ${formatBytes(view.recording.peak_bytes)} at position ${view.peak}. Arrow keys move the inspected position.`}
      style={{ height: `${HEIGHT}px` }}
      onKeyDown={(event) => onKey(event, store, extent, view.peak)}
    >
      <div ref={host} class="fill" />
      {cursor !== null && cursor.position >= 0 && cursor.position < view.length && (
        <Tooltip x={cursor.x + GUTTER_LEFT} y={92} width={width}>
          <UsageHover series={series} position={cursor.position} program={program} />
        </Tooltip>
      )}
    </div>
  );
}

function UsageHover(props: {
  series: ReturnType<typeof usageSeries>;
  position: number;
  program: Program | null;
}): JSX.Element {
  const [x, live, least, unpadded] = props.series;
  const { position, program } = props;
  const step = stepAt(x, position);
  const known = program !== null && position < program.length;
  return (
    <>
      <b>{known ? program.name.at(position) : `position ${position}`}</b>
      {known && program.op_name.at(position) !== "" && <span>{program.op_name.at(position)}</span>}
      <span class="muted">
        position {position}
        {known && ` in ${program.computation.at(position)}`}
      </span>
      <span>
        live {formatBytes(live[step])}
        {least[step] < live[step] && `, at least ${formatBytes(least[step])} nearby`}
        {unpadded[step] < live[step] && `, unpadded ${formatBytes(unpadded[step])}`}
      </span>
    </>
  );
}
