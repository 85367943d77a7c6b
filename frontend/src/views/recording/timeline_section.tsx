import type { JSX } from "preact";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import { formatShare } from "../../base/units";
import type { Axis } from "../../layout/axis/axis";
import type { RecordingData, FirstView } from "../../payload/recording/recording";
import type { Fetched } from "../data/use_fetched";
import { ErrorMessage } from "../widgets/message";
import type { ViewState } from "../state/view_state";
import { Timeline } from "../timeline/timeline";
import { useTerms } from "../data/terms";
import { usePlacement } from "./use_placement";

const TIMELINE_HEIGHT = 360;
/** Height including toolbar, minimap and legend. */
const PLACEHOLDER_HEIGHT = TIMELINE_HEIGHT + 100;

interface Props {
  view: FirstView;
  all: Fetched<RecordingData>;
  early: RecordingData | null;
  axis: Axis;
  store: Store<ViewState>;
  full: boolean;
}

/** Timeline after all buffers have loaded and are placed; until then a placeholder of the same height. */
export function TimelineSection({ view, all, early, axis, store, full }: Props): JSX.Element {
  const terms = useTerms();
  const wanted = useStore(store, (state) => state.timeline_layout);
  const events = view.recording.axis === "TIME";
  // The times of events come with the names.
  const hasTimes = useStore(store, (state) => state.axis) === "time";
  const { placed, blocks, layout, stack, share, failure } = usePlacement(
    all.value,
    hasTimes ? null : early,
    events ? wanted : null,
    view,
  );
  if (all.error !== null) return <ErrorMessage error={all.error} />;
  if (placed === null)
    return (
      <div
        class="timeline-placeholder muted"
        role="status"
        style={{ height: full ? "100%" : `${PLACEHOLDER_HEIGHT}px` }}
      >
        {failure !== null
          ? `The timeline cannot be drawn: ${failure}.`
          : all.value === null && share === 0
            ? `Reading every ${terms.item}…`
            : `Placing ${terms.items}: ${formatShare(share, 1)}`}
      </div>
    );
  return (
    <Timeline
      rows={placed.rows}
      named={all.value !== null}
      blocks={blocks}
      listed={(all.value ?? early)?.rows.length ?? 0}
      regions={placed.regions}
      program={placed.program}
      axis={axis}
      length={view.length}
      peak={view.peak}
      placing={events ? layout : "regions"}
      stack={stack}
      busy={share < 1 ? share : null}
      store={store}
      height={TIMELINE_HEIGHT}
    />
  );
}
