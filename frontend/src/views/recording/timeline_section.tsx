import { useEffect, useMemo, useState } from "preact/hooks";
import { formatShare } from "../../base/units";
import type { Axis } from "../../layout/axis";
import { AgeStack, rowsByAge } from "../../layout/stacking/age_stack";
import {
  type AllocationLayout,
  appendUnexplained,
  applyPlacement,
  type Placement as Heights,
  regionsAreReserved,
  rowLifetimes,
} from "../../layout/stacking/stacking";
import type { FirstView, RecordingData } from "../../payload/recording/recording";
import { startPlacement } from "../../render/workers/workers";
import { useTerms } from "../data/terms";
import type { Fetched } from "../data/use_fetched";
import { useViewState } from "../state/view_state";
import { Timeline } from "../timeline/timeline";
import { ErrorMessage } from "../widgets/message";

interface Placement {
  /** All rows, placed by the layout, followed by blocks for live bytes without a row; null until placed. */
  placed: RecordingData | null;
  /** Identifies the blocks: their rows get names later. */
  blocks: object;
  /** Layout of `placed`. */
  layout: AllocationLayout;
  /** Stack of rows by age; null in other layouts. */
  stack: AgeStack | null;
  /** Progress: share of rows that are placed, 0 to 1. */
  share: number;
  failure: string | null;
}

/** Heights of rows in one layout. */
interface Placed extends Pick<Placement, "layout" | "stack" | "share" | "failure"> {
  /** The rows' column of starts: rows with names have the same one as those without. */
  of: Int32Array | null;
  /** Null for rows that stay in their regions, or that are not placed yet. */
  heights: Heights | null;
  done: boolean;
}

/**
 * Place an allocator's rows on the y axis. A new layout replaces the previous one when it is complete. `early` has all
 * rows without places and names, enough for the layouts that need no addresses, until `all` has come.
 */
function usePlacement(
  all: RecordingData | null,
  early: RecordingData | null,
  layout: AllocationLayout | null,
  { length: positions, recording: { kind } }: FirstView,
): Placement {
  const [state, setState] = useState<Placed>(NOT_PLACED);
  const { unexplained: rest } = useTerms();
  const shown = layout === null ? all : (all ?? early);
  const stacked = useMemo(
    () => (shown === null || layout === null ? null : appendUnexplained(shown.rows, shown.program, rest)),
    [shown, layout === null, rest],
  );
  const source = layout === "address" ? all : shown;
  useEffect(() => {
    if (source === null || stacked === null || layout === null) return;
    const of = source.rows.start;
    const { regions } = source;
    const rows = layout === "address" ? source.rows : stacked;
    if (layout === "address" && regionsAreReserved(kind, regions)) {
      // Segments are stacked in file order, as their free parts belong to the picture too.
      setState({ ...PLACED, of, layout });
      return;
    }
    if (layout === "age") {
      const stack = new AgeStack(rowsByAge(rows, positions));
      setState({ ...PLACED, of, layout, stack, heights: stack.placement(rows.length) });
      return;
    }
    setState((last) => (last.of === of ? { ...last, share: 0 } : { ...NOT_PLACED, of }));
    return startPlacement(
      { layout, lifetimes: rowLifetimes(rows, regions) },
      {
        share: (share) => setState((last) => ({ ...last, share })),
        placed: (heights) => setState({ ...PLACED, of, layout, heights }),
        failed: (failure) => setState({ ...NOT_PLACED, of, failure }),
      },
    );
  }, [layout === "address" ? source : source?.rows.start, layout, positions, kind, rest]);
  const current = shown !== null && state.of === shown.rows.start ? state : NOT_PLACED;
  const { done, heights } = current;
  const placed = useMemo(() => {
    if (!done || shown === null || stacked === null) return null;
    if (heights === null) return shown;
    const rows = current.layout === "address" ? shown.rows : stacked;
    return { ...shown, ...applyPlacement(rows, current.layout, heights) };
  }, [shown, stacked, done, heights, current.layout]);
  if (layout === null) return { ...NOT_PLACED, placed: all, blocks: all ?? NOT_PLACED, share: 1 };
  return { ...current, placed, blocks: heights ?? current.of ?? NOT_PLACED };
}

const NOT_PLACED: Placed = {
  of: null,
  layout: "stacked",
  heights: null,
  stack: null,
  share: 0,
  failure: null,
  done: false,
};
const PLACED = { ...NOT_PLACED, share: 1, done: true };

interface Props {
  view: FirstView;
  all: Fetched<RecordingData>;
  early: RecordingData | null;
  axis: Axis;
}

/** Timeline after all buffers have loaded and are placed; until then a placeholder. */
export function TimelineSection({ view, all, early, axis }: Props) {
  const terms = useTerms();
  const wanted = useViewState((state) => state.timeline_layout);
  const events = view.recording.axis === "TIME";
  // The times of events come with the names.
  const hasTimes = useViewState((state) => state.axis) === "time";
  const { placed, blocks, layout, stack, share, failure } = usePlacement(
    all.value,
    hasTimes ? null : early,
    events ? wanted : null,
    view,
  );
  if (all.error !== null) return <ErrorMessage error={all.error} />;
  if (placed === null)
    return (
      <div class="timeline-placeholder muted" role="status">
        {failure !== null
          ? `The timeline cannot be drawn: ${failure}.`
          : all.value === null && share === 0
            ? `Reading every ${terms.item}…`
            : `Placing ${terms.items}: ${formatShare(share, 1)}`}
      </div>
    );
  return (
    <Timeline
      {...{ blocks, axis, stack }}
      rows={placed.rows}
      named={all.value !== null}
      listed={(all.value ?? early)?.rows.length ?? 0}
      regions={placed.regions}
      program={placed.program}
      length={view.length}
      peak={view.peak}
      placing={events ? layout : "regions"}
      busy={share < 1 ? share : null}
    />
  );
}
