import type { ComponentChildren } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { formatBytes, formatCount, formatCounted } from "../../base/units";
import { liveAt } from "../../layout/usage/live_set";
import type { Api } from "../../payload/api";
import type { DeviceProfile, Problem, Summary } from "../../payload/generated/answers";
import type { RecordingData } from "../../payload/recording/recording";
import { CallGraphSection } from "../call_graph/call_graph";
import { SNAPSHOT_TERMS, TermsContext } from "../data/terms";
import { useFetched, useLastFetched } from "../data/use_fetched";
import { allRows, type PageProps, usePageState } from "../data/use_recording";
import { PageFrame, useDetails } from "../page/details";
import { FigureList } from "../page/figures";
import { Headline } from "../page/headline";
import { TreesScope } from "../page/row_filter";
import { RecordingPage } from "../recording/recording_page";
import { NEW_RECORDING, store, useViewState } from "../state/view_state";
import { TREE_CHARTS, TreeCharts, useTree } from "../trees/tree_charts";
import { Choice } from "../widgets/choice";
import { ErrorMessage } from "../widgets/message";
import { GrowthSeries } from "./device_profile_growth";
import { OomPage } from "./oom_page";

interface SnapshotProps extends PageProps {
  summary: Summary;
  /** Number of snapshots in the run. */
  snapshots: number;
  problems: Problem[];
}

/** Page of a device memory profile: live arrays and executables by call stack. A leak of the series comes first. */
function DeviceProfilePage({ api, summary, snapshots, problems, onState }: SnapshotProps) {
  const { id } = summary;
  const profile = useFetched(id, (key, signal) => api.deviceProfile({ id: key }, signal));
  const growth = useLastFetched(snapshots > 1 ? `${id} ${snapshots}` : null, (_, signal) =>
    api.growth({ id }, signal),
  );
  const all = useFetched(profile.value === null ? null : id, (key, signal) => api.rows({ id: key }, signal));
  const [graphReady, setGraphReady] = useState(false);
  const error = profile.error ?? all.error;
  const ready = profile.value !== null && all.value !== null && graphReady;
  usePageState(onState, error, ready);
  if (profile.error !== null) return <ErrorMessage error={profile.error} />;
  // What comes later would move what is below it.
  if (profile.value === null || (snapshots > 1 && growth.waiting && growth.value === null))
    return <div class="placeholder" aria-busy="true" />;
  const fileName = `${summary.title}-${summary.memory}`;
  const leak = growth.value?.headline ?? null;
  const { headline } = profile.value;
  return (
    <TermsContext.Provider value={SNAPSHOT_TERMS}>
      <TreesScope api={api} recording={summary} everything={all.value}>
        <Frame {...{ api, id }} everything={all.value}>
          <Headline
            {...{ problems, headline: leak ?? headline, alarm: leak !== null }}
            caveats={summary.caveats}
          >
            {leak !== null && <p class="muted">{headline}</p>}
            <Figures profile={profile.value} />
          </Headline>
          {growth.error !== null && <ErrorMessage error={growth.error} />}
          {growth.value !== null && growth.value.points.length > 1 && (
            <GrowthSeries growth={growth.value} id={id} />
          )}
          <Devices profile={profile.value} />
          <Trees all={all.value} fileName={fileName}>
            <CallGraphSection
              {...{ api, id, fileName }}
              base=""
              devices={profile.value.devices.length}
              onReady={setGraphReady}
            />
          </Trees>
        </Frame>
      </TreesScope>
    </TermsContext.Provider>
  );
}

interface FrameProps {
  api: Api;
  id: string;
  /** Null until all rows have loaded. */
  everything: RecordingData | null;
  children: ComponentChildren;
}

/** The page, with a side panel for the row selected in a tree or in another tab. */
function Frame({ everything, children, ...shared }: FrameProps) {
  const available = useMemo(() => (everything === null ? null : allRows(everything)), [everything]);
  const drawer = useDetails({ ...shared, available, length: 1, times: null, moment: true });
  return <PageFrame drawer={drawer}>{children}</PageFrame>;
}

function Figures({ profile }: { profile: DeviceProfile }) {
  const { capacity_bytes: capacity } = profile.recording;
  const { step, time_ns: time } = profile.taken;
  const when = [
    step !== null && `after step ${formatCount(step)}`,
    time !== null && `taken ${new Date(time / 1e6).toLocaleString("en-GB")}`,
  ].filter(Boolean);
  return (
    <section class="figures" aria-label="Figures">
      {when.length > 0 && <p class="muted">{when.join(", ")}</p>}
      <FigureList
        figures={profile.figures.filter(({ bytes }) => bytes !== null && bytes > 0)}
        whole={{ bytes: capacity, label: "of capacity" }}
      />
    </section>
  );
}

/** Devices of the file, with their bytes. */
function Devices({ profile }: { profile: DeviceProfile }) {
  if (profile.devices.length < 2) return null;
  const most = Math.max(1, ...profile.devices.map(({ bytes }) => bytes));
  return (
    <section aria-label="Devices">
      <header class="section-head">
        <h2>Devices of this file</h2>
      </header>
      <ul class="devices" data-testid="device-list">
        {profile.devices.map(({ id, memory, bytes, kinds }) => (
          <li key={id}>
            <button
              class="link"
              aria-current={id === profile.recording.id}
              onClick={() => store.set({ space: memory, ...NEW_RECORDING })}
            >
              {memory}
            </button>
            <span class="device-bar" style={{ "--used": `${(100 * bytes) / most}%` }}>
              {formatBytes(bytes)}
            </span>
            <span class="muted">
              {kinds
                .map(
                  ({ kind, allocations, bytes: held }) =>
                    `${formatCounted(allocations, kind)}, ${formatBytes(held)}`,
                )
                .join("; ")}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

interface TreesProps {
  /** Null until all rows have loaded. */
  all: RecordingData | null;
  fileName: string;
  /** Sections below, which come once the height of the charts is known. */
  children: ComponentChildren;
}

/** Trees of this device's call stacks: top-down and bottom-up. */
function Trees({ all, fileName, children }: TreesProps) {
  const state = useViewState(({ chart }) => chart);
  const live = useMemo(() => (all === null ? new Uint32Array(0) : liveAt(all.rows, 0)), [all]);
  const { tree, error } = useTree(all?.rows ?? null, false, true);
  const isDrawn = useRef(false);
  isDrawn.current ||= tree !== null || error !== null;
  return (
    <>
      <section aria-label="Stacks">
        <header class="section-head">
          <h2>By call stack</h2>
          <span class="spacer" />
          <Choice
            label="Chart"
            testid="chart"
            options={TREE_CHARTS}
            value={state === "address" ? "flame" : state}
            onPick={(picked) => store.set({ chart: picked })}
          />
        </header>
        <TreeCharts
          {...{ live, fileName }}
          rows={all?.rows ?? null}
          program={all?.program ?? null}
          unexplained={0}
          compiled={false}
        />
      </section>
      {isDrawn.current && children}
    </>
  );
}

/** Page of memory at one moment, by the kind of recording. */
export function SnapshotPage({ summary, snapshots, ...shared }: SnapshotProps) {
  if (summary.kind === "oom") return <OomPage {...shared} summary={summary} />;
  if (summary.kind === "device_profile") return <DeviceProfilePage {...shared} {...{ summary, snapshots }} />;
  return <RecordingPage {...shared} tab="snapshots" allocations={summary.allocations} id={summary.id} />;
}
