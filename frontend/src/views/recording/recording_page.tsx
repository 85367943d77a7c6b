import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import type { Api } from "../../payload/api";
import type { Problem } from "../../payload/generated/answers";
import type { RecordingData, FirstView } from "../../payload/recording/recording";
import type { Fetched } from "../data/use_fetched";
import { ErrorMessage } from "../widgets/message";
import type { Tab, ViewState } from "../state/view_state";
import { TreesScope } from "../row_filter/trees_scope";
import { termsOf, TermsContext } from "../data/terms";
import { Sections } from "./recording_sections";
import { PageFrame, useDetails } from "../details/page_frame";
import { availableRows } from "../data/available_rows";
import { TimelineSection } from "./timeline_section";
import { useAxis } from "./use_axis";
import type { OnPageState } from "../data/use_recording";
import { useRecording } from "../data/use_recording";
import { preparePlacement } from "../../render/workers/placement";
import { prepareRenderer } from "../../render/workers/timeline_renderer";

export type { PageState, Positions } from "../data/use_recording";

interface Props {
  api: Api;
  tab: Tab;
  /** Id of the recording. */
  id: string;
  /** Number of its allocations. */
  allocations: number;
  problems: Problem[];
  store: Store<ViewState>;
  dark: boolean;
  onState: OnPageState;
}

/** With fewer allocations, all of their columns arrive as quickly as their lifetimes would. */
const MIN_EARLY = 20_000;

/** Page of one recording: a compiled program, or an allocator over time. */
export function RecordingPage({ tab, id, allocations, onState, ...shared }: Props): JSX.Element {
  const { api, store } = shared;
  const hasEarly = tab === "memory_profile" && api.report === null && allocations >= MIN_EARLY;
  useEffect(() => {
    if (hasEarly) prepareRenderer();
    if (hasEarly && store.get().timeline_layout === "stacked") preparePlacement();
  }, [hasEarly]);
  const { first, all, early } = useRecording(
    api,
    id,
    (key, signal) =>
      tab === "memory_profile"
        ? api.memoryProfile({ id: key }, signal)
        : api.memoryViewer({ id: key }, signal),
    onState,
    hasEarly,
  );
  if (first.error !== null) return <ErrorMessage error={first.error} />;
  if (first.value === null) return <div class="placeholder" aria-busy="true" />;
  return (
    <TermsContext.Provider value={termsOf(first.value.recording)}>
      <TreesScope api={api} recording={first.value.recording} everything={all.value} store={shared.store}>
        <Loaded {...shared} view={first.value} all={all} early={early} />
      </TreesScope>
    </TermsContext.Provider>
  );
}

interface LoadedProps {
  api: Api;
  view: FirstView;
  all: Fetched<RecordingData>;
  early: RecordingData | null;
  problems: Problem[];
  store: Store<ViewState>;
  dark: boolean;
}

/** The page or the full-window timeline, with the side panel of the selected buffer. */
function Loaded({ api, view, all, early, problems, store, dark }: LoadedProps): JSX.Element {
  const full = useStore(store, (state) => state.timeline_only);
  const available = useMemo(() => availableRows(view, all.value), [view, all.value]);
  const program = all.value?.program ?? null;
  const axis = useAxis(store, view, program);
  const shared = { api, store, dark };
  const times = program?.time_ns ?? null;
  const drawer = useDetails({
    ...shared,
    id: view.recording.id,
    available,
    length: view.length,
    times,
    moment: false,
  });
  const timeline = (
    <TimelineSection view={view} all={all} early={early} axis={axis} store={store} full={full} />
  );
  return (
    <PageFrame full={full} drawer={drawer}>
      {full ? (
        timeline
      ) : (
        <Sections
          {...shared}
          view={view}
          available={available}
          program={program}
          spans={all.value?.spans ?? null}
          axis={axis}
          problems={problems}
        >
          {timeline}
        </Sections>
      )}
    </PageFrame>
  );
}
