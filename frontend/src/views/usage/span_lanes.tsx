import type { JSX } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import { formatCounted } from "../../base/units";
import type { Axis } from "../../layout/axis/axis";
import { positionOfTime, layoutSpanLanes, countSpansFrom } from "../../layout/timeline/span_lanes";
import { formatTime } from "../../layout/axis/ticks";
import { xPixel } from "../../layout/timeline/rects";
import {
  ANNOTATION_SPAN,
  EXECUTION_SPAN,
  OUT_OF_MEMORY_SPAN,
  STEP_SPAN,
} from "../../payload/generated/constants";
import { type Spans } from "../../payload/recording/spans";
import type { ViewState } from "../state/view_state";
import { useWidth } from "../browser/use_width";
import { GUTTER_LEFT, GUTTER_RIGHT } from "../drawing/gutters";

const LANE_HEIGHT = 16;
/** More lanes than this push the curve out of sight, and are shown on demand. */
const FIRST_LANES = 6;
/** Narrower ones could not be seen. */
const MIN_WIDTH = 1;
/** A moment at which memory ran out is no shorter than the sign for it. */
const MOMENT_WIDTH = 16;

/** What the lanes of a kind are called beside them. Where memory ran out says so itself. */
const LANE_LABELS = new Map([
  [STEP_SPAN, "steps"],
  [EXECUTION_SPAN, "executions"],
  [ANNOTATION_SPAN, "annotations"],
]);

interface Props {
  spans: Spans;
  times: Float64Array;
  axis: Axis;
  store: Store<ViewState>;
}

/** Left and right go to the span drawn before or after the one with the focus; all of them are one stop of Tab. */
function goToNext(event: KeyboardEvent): void {
  if (!(event.target instanceof HTMLElement)) return;
  const { previousElementSibling: before, nextElementSibling: after } = event.target;
  const next = event.key === "ArrowLeft" ? before : event.key === "ArrowRight" ? after : null;
  if (!(next instanceof HTMLElement)) return;
  event.preventDefault();
  next.focus();
}

/** Steps, executions and annotations over the curve, on its x axis. A click zooms to one, or looks at a moment. */
export function SpanLanes({ spans, times, axis, store }: Props): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const width = useWidth(host) - GUTTER_LEFT - GUTTER_RIGHT;
  const zoom = useStore(store, (state) => state.zoom);
  const lanes = useMemo(() => layoutSpanLanes(spans), [spans]);
  const [all, setAll] = useState(false);
  const count = all ? lanes.count : Math.min(lanes.count, FIRST_LANES);
  const { lane } = lanes;
  const window = axis.fromSaved(zoom);
  const drawn = useMemo(() => {
    const found: JSX.Element[] = [];
    const pixelOf = (ns: number): number => xPixel(axis.at(positionOfTime(times, ns)), window, width);
    // Of many in one pixel of a lane the first is drawn: a screen has room for some thousands at most.
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
          class={`span span-${spans.kind[span]}`}
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
        aria-label="Steps, executions, annotations, and when memory ran out. Arrow keys go from one to the next, Enter zooms to it."
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
