import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { type Store, useStore } from "../../base/store";
import { type Axis, positionAxis, timeAxis } from "../../layout/axis/axis";
import type { Api } from "../../payload/api";
import type { Problem } from "../../payload/generated/answers";
import type { FirstView, Program, RecordingData } from "../../payload/recording/recording";
import { prepareRenderer } from "../../render/workers/timeline_renderer";
import { preparePlacement } from "../../render/workers/workers";
import { Breakdown } from "../breakdown/breakdown";
import { Buffers } from "../buffer_table/buffers";
import { TermsContext, termsOf } from "../data/terms";
import { type Fetched, useFetched } from "../data/use_fetched";
import { availableRows, type PageProps, useRecording } from "../data/use_recording";
import { AdvicePanel } from "../page/advice";
import { PageFrame, useDetails } from "../page/details";
import { Figures } from "../page/figures";
import { AssumedCapacity, Headline } from "../page/headline";
import { TreesScope } from "../page/row_filter";
import type { Tab, ViewProps, ViewState } from "../state/view_state";
import { UsageSection, type UsageSectionProps } from "../usage/usage_section";
import { ErrorMessage } from "../widgets/message";
import { KernelsPanel } from "./kernels_panel";
import { StepGrowth } from "./step_growth";
import { TimelineSection } from "./timeline_section";

/** Return the x axis of all charts. The time axis needs the timestamps of all events, which load with the rows. */
function useAxis(store: Store<ViewState>, view: FirstView, program: Program | null): Axis {
  const wanted = useStore(store, (state) => state.axis);
  const times = wanted === "time" ? (program?.time_ns ?? null) : null;
  return useMemo(() => (times === null ? positionAxis(view.length) : timeAxis(times)), [times, view.length]);
}

interface RecordingSectionsProps extends UsageSectionProps {
  problems: Problem[];
}

/** Sections of the page: headline, usage, breakdown and table. */
function Sections(props: RecordingSectionsProps): JSX.Element {
  const { api, view, available, program, spans, axis, problems, store, dark, children } = props;
  // The lines with the most memory and with leaks are known once everything is read, roles sooner.
  const follows = view.rows.roles_follow || (available.complete && view.recording.axis === "TIME");
  const complete = useFetched(follows ? view.recording.id : null, (id, signal) =>
    api.headline({ id }, signal),
  );
  return (
    <>
      <Headline
        headline={complete.value?.headline ?? view.headline}
        grows={view.rows.roles_follow && complete.value === null}
        caveats={view.caveats}
        problems={problems}
      >
        <Figures view={view} available={available} dark={dark} />
        <AssumedCapacity recordings={[view.recording]} store={store} />
      </Headline>
      <UsageSection {...{ api, view, available, program, spans, axis, store, dark }}>{children}</UsageSection>
      {view.recording.axis === "TIME" && <StepGrowth api={api} recording={view.recording} store={store} />}
      <AdvicePanel api={api} id={available.complete ? view.recording.id : null} store={store} />
      {view.recording.kind === "program" && <KernelsPanel api={api} id={view.recording.id} />}
      <Breakdown view={view} available={available} program={program} store={store} dark={dark} />
      <Buffers view={view} available={available} program={program} store={store} dark={dark} />
    </>
  );
}

export type { PageState, Positions } from "../data/use_recording";

interface Props extends PageProps {
  tab: Tab;
  /** Id of the recording. */
  id: string;
  /** Number of its allocations. */
  allocations: number;
  problems: Problem[];
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

interface LoadedProps extends ViewProps {
  api: Api;
  view: FirstView;
  all: Fetched<RecordingData>;
  early: RecordingData | null;
  problems: Problem[];
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
          {...{ view, available, program, axis, problems }}
          spans={all.value?.spans ?? null}
        >
          {timeline}
        </Sections>
      )}
    </PageFrame>
  );
}
