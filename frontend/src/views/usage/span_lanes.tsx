import type { JSX } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { goToNext } from "../../base/input";
import { formatCounted } from "../../base/units";
import { type Axis, formatTime } from "../../layout/axis";
import { xPixel } from "../../layout/timeline/rects";
import { countSpansFrom, layoutSpanLanes, positionOfTime } from "../../layout/usage/span_lanes";
import {
  ANNOTATION_SPAN,
  EXECUTION_SPAN,
  OUT_OF_MEMORY_SPAN,
  STEP_SPAN,
} from "../../payload/generated/constants";
import type { Spans } from "../../payload/recording/recording";
import { useWidth } from "../browser/hooks";
import { GUTTER_LEFT, GUTTER_RIGHT } from "../drawing/surface";
import { store, useViewState } from "../state/view_state";

const LANE_HEIGHT = 16;
/** Lanes shown at first; more would push the curve out of view. */
const FIRST_LANES = 6;
/** Minimum width of a span in pixels. */
const MIN_WIDTH = 1;
/** Narrower spans would be nothing but border. */
const MIN_BORDERED = 3;
/** Minimum width of an out-of-memory mark in pixels. */
const MOMENT_WIDTH = 16;

/** Labels of the lanes; out-of-memory marks have their own. */
const LANE_LABELS = new Map([
  [STEP_SPAN, "steps"],
  [EXECUTION_SPAN, "executions"],
  [ANNOTATION_SPAN, "annotations"],
]);

/** Steps, executions and annotations above the curve. A click zooms to a span, or inspects an out-of-memory event. */
export function SpanLanes({ spans, times, axis }: { spans: Spans; times: Float64Array; axis: Axis }) {
  const host = useRef<HTMLDivElement>(null);
  const width = useWidth(host) - GUTTER_LEFT - GUTTER_RIGHT;
  const zoom = useViewState((state) => state.zoom);
  const lanes = useMemo(() => layoutSpanLanes(spans), [spans]);
  const [all, setAll] = useState(false);
  const count = all ? lanes.count : Math.min(lanes.count, FIRST_LANES);
  const { lane } = lanes;
  const window = axis.fromSaved(zoom);
  const drawn = useMemo(() => {
    const found: JSX.Element[] = [];
    const pixelOf = (ns: number): number => xPixel(axis.at(positionOfTime(times, ns)), window, width);
    // Of several spans in one pixel of a lane only the first is drawn, which bounds the number of elements.
    const drawnTo = new Float64Array(count).fill(-1);
    for (let span = 0; span < spans.length; span++) {
      const start = pixelOf(spans.start_ns[span]);
      const moment = spans.kind[span] === OUT_OF_MEMORY_SPAN;
      const end = Math.max(pixelOf(spans.end_ns[span]), start + (moment ? MOMENT_WIDTH : MIN_WIDTH));
      if (lane[span] >= count || end <= Math.max(drawnTo[lane[span]], 0) || start >= width) continue;
      const [from, to] = [Math.max(start, 0), Math.min(end, width)];
      drawnTo[lane[span]] = Math.floor(from) + MIN_WIDTH;
      const name = spans.name.at(span);
      const [begins, ends] = [spans.start_ns[span], spans.end_ns[span]].map((ns) =>
        positionOfTime(times, ns),
      );
      const when = moment ? "at" : `${formatTime(spans.end_ns[span] - spans.start_ns[span])}, from`;
      found.push(
        <button
          key={span}
          class={`span span-${spans.kind[span]}${to - from < MIN_BORDERED ? " thin" : ""}`}
          tabindex={found.length === 0 ? 0 : -1}
          data-testid={moment ? "out-of-memory" : "span"}
          title={`${name}, ${when} ${formatTime(spans.start_ns[span])}`}
          style={{
            left: `${GUTTER_LEFT + from}px`,
            width: `${to - from}px`,
            top: `${lane[span] * LANE_HEIGHT}px`,
          }}
          onClick={() =>
            store.set(
              moment
                ? { position: Math.floor(begins) }
                : { zoom: axis.toSaved([axis.at(begins), axis.at(ends)]) },
            )
          }
        >
          {moment ? `! ${name}` : to - from > 30 && name}
        </button>,
      );
    }
    return found;
  }, [spans, times, lane, count, axis, window[0], window[1], width]);
  const hidden = useMemo(() => countSpansFrom(lanes, FIRST_LANES), [lanes]);
  const more = lanes.count - FIRST_LANES;
  return (
    <>
      <div class="lane-heads" data-testid="lane-heads" aria-hidden="true">
        {lanes.kinds.map(
          ({ kind, first }) =>
            first < count && (
              <span key={kind} style={{ top: `${first * LANE_HEIGHT}px` }}>
                {LANE_LABELS.get(kind)}
              </span>
            ),
        )}
      </div>
      <div
        ref={host}
        class="spans"
        data-testid="spans"
        role="group"
        aria-label="Steps, executions, annotations and out-of-memory events. Arrow keys move between them, Enter zooms."
        style={{ height: `${count * LANE_HEIGHT}px` }}
        onKeyDown={goToNext}
      >
        {drawn}
      </div>
      {more > 0 && (
        <button class="link more-lanes" data-testid="more-lanes" onClick={() => setAll(!all)}>
          {all ? "fewer lanes" : `+${formatCounted(more, "more lane")} with ${formatCounted(hidden, "span")}`}
        </button>
      )}
    </>
  );
}
