import type { JSX } from "preact";
import { useContext, useEffect, useMemo } from "preact/hooks";
import { type Axis, durationAxis, positionAxis, timeAxis } from "../../layout/axis";
import type { Api } from "../../payload/api";
import type { AdviceList, Problem, RecordingVerdict } from "../../payload/generated/answers";
import type { FirstView, Program, RecordingData } from "../../payload/recording/recording";
import { prepareRenderer } from "../../render/workers/timeline_renderer";
import { preparePlacement } from "../../render/workers/workers";
import { Breakdown } from "../breakdown/breakdown";
import { PrintingContext } from "../browser/printing";
import { Buffers } from "../buffer_table/buffer_table";
import { capitalize, TermsContext, termsOf, useTerms } from "../data/terms";
import { type Fetched, useFetched } from "../data/use_fetched";
import { type AvailableRows, availableRows, type PageProps, useRecording } from "../data/use_recording";
import { AdvicePanel } from "../page/advice";
import { Below, type BelowTab } from "../page/below";
import { Figures } from "../page/figures";
import { Caveats, Verdict } from "../page/headline";
import { TreesScope } from "../page/row_filter";
import { store, type Tab, useViewState } from "../state/view_state";
import { Executions } from "../usage/executions";
import { UsageSection } from "../usage/usage_chart";
import { ErrorMessage } from "../widgets/message";
import { Panel } from "./panel";
import { KernelsPanel, StepGrowth } from "./step_growth";
import { TimelineSection } from "./timeline_section";
import { type KnownTimes, TimesTab, useTimes } from "./times";

interface FrameProps {
  /** Only the charts and the panel, over the whole window. */
  full: boolean;
  top: JSX.Element;
  charts: JSX.Element;
  below: JSX.Element;
  panel: JSX.Element;
}

/** A page in which verdict, figures and charts fill the window, with tabs below and a panel at the right. */
export function RecordingFrame({ full, top, charts, below, panel }: FrameProps) {
  return (
    <div class={full ? "full with-panel" : "page with-panel"}>
      <div class="content">
        <div class="first-screen">
          {!full && top}
          {charts}
        </div>
        {!full && below}
      </div>
      {panel}
    </div>
  );
}

/** Return the x axis of all charts. The time axis needs the timestamps of all events, which load with the rows. */
function useAxis(view: FirstView, program: Program | null, times: KnownTimes | null): Axis {
  const timed = useViewState((state) => state.axis) === "time";
  const clock = timed ? (program?.time_ns ?? null) : null;
  const seconds = timed && times !== null ? times.tables.positions.seconds : null;
  const measure = times?.times.measured_seconds == null ? "estimated time" : "measured time";
  return useMemo(() => {
    if (clock !== null) return timeAxis(clock);
    return seconds === null ? positionAxis(view.length) : durationAxis(seconds, measure);
  }, [clock, seconds, measure, view.length]);
}

/** Return the tabs below the charts that have something to show. */
function useTabs(
  props: LoadedProps & {
    available: AvailableRows;
    program: Program | null;
    advice: Fetched<AdviceList>;
    times: Fetched<KnownTimes | "none">;
  },
): BelowTab[] {
  const { api, view, all, available, program, advice, times } = props;
  const { id, axis, kind } = view.recording;
  const complete = all.value !== null;
  const kernels = useFetched(kind === "program" ? id : null, (key, signal) =>
    api.kernels({ id: key }, signal),
  );
  const leaks = useFetched(axis === "TIME" && complete ? id : null, (key, signal) =>
    api.leaks({ id: key }, signal),
  );
  const printing = useContext(PrintingContext);
  const found = kernels.value?.kernels ?? [];
  const below = { view, available, program };
  const tabs: (BelowTab | false)[] = [
    {
      key: "advice",
      label: "Advice",
      contents: () => <AdvicePanel advice={advice} id={id} />,
    },
    { key: "breakdown", label: "Breakdown", contents: () => <Breakdown {...below} /> },
    { key: "buffers", label: capitalize(useTerms().items), contents: () => <Buffers {...below} /> },
    kind === "program" &&
      program !== null &&
      // Printed only if it was read.
      (!printing || times.value !== null) && {
        key: "time",
        label: "Time",
        contents: () => <TimesTab {...{ times, view, program }} rows={available.rows} />,
      },
    found.length > 0 && {
      key: "kernels",
      label: "Kernels",
      contents: () => <KernelsPanel kernels={found} />,
    },
    leaks.value !== null &&
      (leaks.value.steps > 0 || leaks.value.message !== null) && {
        key: "growth",
        label: "Growth",
        contents: () => <StepGrowth api={api} recording={view.recording} />,
      },
    kind === "allocator" &&
      complete && {
        key: "programs",
        label: "Programs",
        contents: () => <Executions {...{ api, view }} />,
      },
  ];
  return tabs.filter((tab) => tab !== false);
}

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
export function RecordingPage({ tab, id, allocations, onState, ...shared }: Props) {
  const { api } = shared;
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
      <TreesScope api={api} recording={first.value.recording} everything={all.value}>
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
}

/** The first screen of a page, the panel beside it, and the tabs below; or only the charts in the full window. */
function Loaded(props: LoadedProps) {
  const { api, view, all, early, problems } = props;
  const full = useViewState((state) => state.timeline_only);
  const available = useMemo(() => availableRows(view, all.value), [view, all.value]);
  const program = all.value?.program ?? null;
  const times = useTimes(api, view, available.complete);
  const known = times.value === "none" ? null : times.value;
  const axis = useAxis(view, program, known);
  const advice = useFetched(available.complete ? view.recording.id : null, (id, signal) =>
    api.advice({ id }, signal),
  );
  const tabs = useTabs({ ...props, available, program, advice, times });
  const { verdict, waiting } = useVerdict(api, view, available.complete);
  const busy = waiting || (advice.value === null && advice.error === null);
  const shared = { api, view, available, program, axis };
  return (
    <RecordingFrame
      full={full}
      panel={<Panel {...shared} times={known?.tables ?? null} />}
      top={
        <>
          <Verdict verdict={verdict} advice={advice.value} busy={busy} />
          <Figures {...{ view, available }} />
          <Caveats caveats={view.caveats} problems={problems} />
        </>
      }
      charts={
        <UsageSection {...shared} spans={all.value?.spans ?? null}>
          <TimelineSection {...{ view, all, early, axis }} />
        </UsageSection>
      }
      below={<Below tabs={tabs} />}
    />
  );
}

/** Return the verdict; lines and leaks are known once everything is read, roles sooner. */
function useVerdict(
  api: Api,
  view: FirstView,
  complete: boolean,
): { verdict: RecordingVerdict; waiting: boolean } {
  const follows = view.rows.roles_follow || (complete && view.recording.axis === "TIME");
  const { value, error } = useFetched(follows ? view.recording.id : null, (id, signal) =>
    api.verdict({ id }, signal),
  );
  return { verdict: value ?? view.verdict, waiting: follows && value === null && error === null };
}
