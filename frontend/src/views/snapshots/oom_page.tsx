import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Store } from "../../base/store";
import { liveAt } from "../../layout/usage/live_set";
import type { Api } from "../../payload/api";
import type { Problem } from "../../payload/generated/answers";
import type { RecordingData, FirstView } from "../../payload/recording/recording";
import type { Summary } from "../../payload/generated/answers";
import { ErrorMessage } from "../widgets/message";
import { Headline } from "../figures/headline";
import { Breakdown } from "../breakdown/breakdown";
import { Figures } from "../figures/figures";
import { PageFrame, useDetails } from "../details/page_frame";
import { availableRows } from "../data/available_rows";
import type { OnPageState } from "../data/use_recording";
import { useRecording } from "../data/use_recording";
import type { ViewState } from "../state/view_state";
import { TreesScope } from "../row_filter/trees_scope";
import { SNAPSHOT_TERMS, type Terms, TermsContext } from "../data/terms";
import { FailedProgram } from "./failed_program";
import { AddressMap } from "../address_map/address_map";

/** Phases before the program runs. */
const NEEDED_TERMS: Terms = { ...SNAPSHOT_TERMS, live: "needed" };

interface Shared {
  api: Api;
  problems: Problem[];
  store: Store<ViewState>;
  dark: boolean;
}

interface Props extends Shared {
  summary: Summary;
  onState: OnPageState;
}

/** Page of an out-of-memory error: reason, advice, and memory contents as far as the text lists them. */
export function OomPage({ summary, onState, ...shared }: Props): JSX.Element {
  const { api, store } = shared;
  const { id } = summary;
  const { first, all } = useRecording(
    api,
    id,
    (key, signal) => api.memoryViewer({ id: key }, signal),
    onState,
  );
  const error = first.error ?? all.error;
  if (error !== null) return <ErrorMessage error={error} />;
  if (first.value === null) return <div class="placeholder" aria-busy="true" />;
  return (
    <TermsContext.Provider
      value={first.value.out_of_memory?.used_is === "needed" ? NEEDED_TERMS : SNAPSHOT_TERMS}
    >
      <TreesScope api={api} recording={first.value.recording} everything={all.value} store={store}>
        <Loaded {...shared} view={first.value} everything={all.value} />
      </TreesScope>
    </TermsContext.Provider>
  );
}

function Loaded(props: Shared & { view: FirstView; everything: RecordingData | null }): JSX.Element {
  const { api, problems, store, dark, view, everything } = props;
  const available = useMemo(() => availableRows(view, everything), [view, everything]);
  const shared = { store, dark };
  const drawer = useDetails({
    ...shared,
    api,
    id: view.recording.id,
    available,
    length: view.length,
    times: null,
    moment: true,
  });
  return (
    <PageFrame drawer={drawer}>
      <Headline headline={view.headline} caveats={view.caveats} problems={problems}>
        <OomHints sentences={view.out_of_memory?.sentences.slice(2).filter(isHint) ?? []} />
        <FailedProgram api={api} id={view.recording.id} store={store} />
        <Figures view={view} available={available} dark={dark} />
      </Headline>
      {everything !== null && everything.regions.length > 0 && (
        <AddressMap
          {...shared}
          rows={everything.rows}
          regions={everything.regions}
          places={everything.addresses}
          live={liveAt(everything.rows, view.peak)}
          position={view.peak}
          outOfMemory={view.out_of_memory}
          fileName={`${view.recording.title}-addresses`}
        />
      )}
      {view.recording.peak_bytes > 0 && view.recording.allocations > 0 && (
        <Breakdown {...shared} view={view} available={available} program={everything?.program ?? null} />
      )}
    </PageFrame>
  );
}

/** FailedProgram shows how to dump a program, with a button. */
function isHint(sentence: string): boolean {
  return !sentence.includes("--xla_dump_to=");
}

/** Advice, largest effect first. */
function OomHints({ sentences }: { sentences: string[] }): JSX.Element | null {
  if (sentences.length === 0) return null;
  return (
    <ul class="oom-hints" aria-label="Advice" data-testid="oom-hints">
      {sentences.map((sentence) => (
        <li key={sentence}>{sentence}</li>
      ))}
    </ul>
  );
}
