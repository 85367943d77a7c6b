import { useEffect, useMemo } from "preact/hooks";
import { timeAxis } from "../../layout/axis/axis";
import { hostOf, keepTimes, snapshotsOf } from "../../layout/live";
import type { Problem, Summary } from "../../payload/generated/answers";
import { TermsContext, termsOf } from "../data/terms";
import { allRows, type Curve, type PageProps, useCurve } from "../data/use_recording";
import { Figures } from "../page/figures";
import { Caveats } from "../page/headline";
import { LedgerSection } from "./ledger";
import { Panel } from "./panel";
import { RecordingFrame } from "./recording_frame";
import { Verdict } from "../page/verdict";
import { store } from "../state/view_state";
import { UsageSection } from "../usage/usage_section";
import { ErrorMessage } from "../widgets/message";
import { StepGrowth } from "./step_growth";

interface Props extends PageProps {
  summary: Summary;
  /** All recordings of the run. */
  recordings: readonly Summary[];
  problems: Problem[];
}

/** Page of a job's memory over time, which grows while the job runs, with the snapshots of the job as marks. */
export function WatchPage({ summary, onState, ...shared }: Props) {
  const { api } = shared;
  const { curve, error } = useCurve(api, summary.id, `${summary.length} ${summary.end_ns}`, (last, next) => {
    const { position, zoom } = store.get();
    store.fill(keepTimes({ position, zoom }, last.times, next.times));
  });
  useEffect(() => {
    onState(error !== null ? "error" : curve === null ? "loading" : "ready", curve?.view ?? null);
  }, [error, curve]);
  if (error !== null) return <ErrorMessage error={error} />;
  if (curve === null) return <div class="placeholder" aria-busy="true" />;
  return (
    <TermsContext.Provider value={termsOf(summary)}>
      <Sections {...shared} curve={curve} />
    </TermsContext.Provider>
  );
}

type SectionsProps = Omit<Props, "summary" | "onState"> & { curve: Curve };

function Sections({ api, curve, recordings, problems }: SectionsProps) {
  const { view, data, times } = curve;
  const available = useMemo(() => allRows(data), [data]);
  const axis = useMemo(() => timeAxis(times), [times]);
  const snapshots = useMemo(
    () => snapshotsOf(recordings, view.recording.memory),
    [recordings, view.recording.memory],
  );
  const shared = { api, view, available, program: data.program, axis };
  return (
    <RecordingFrame
      full={false}
      panel={<Panel {...shared} />}
      top={
        <>
          <Verdict verdict={view.verdict} advice={null} busy={false} />
          <Figures {...{ view, available }} />
          <Caveats caveats={view.caveats} problems={problems} />
        </>
      }
      charts={
        <UsageSection {...shared} snapshots={snapshots} spans={data.spans}>
          {null}
        </UsageSection>
      }
      below={
        <>
          {[view.recording, ...hostOf(recordings, view.recording)].map((recording) => (
            <LedgerSection key={recording.id} {...{ api, recording }} />
          ))}
          <StepGrowth api={api} recording={view.recording} />
        </>
      }
    />
  );
}
