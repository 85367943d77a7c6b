import { useMemo, useState } from "preact/hooks";
import { messageOf } from "../../base/errors";
import { formatBytes, formatCounted, formatShare } from "../../base/units";
import type { Api } from "../../payload/api";
import type { FailureInLogdir, Holder, Problem, Summary } from "../../payload/generated/answers";
import type { FirstView, RecordingData } from "../../payload/recording/recording";
import { AddressMap, Breakdown } from "../breakdown/breakdown";
import { copyText } from "../browser/export";
import { Buffers } from "../buffer_table/buffer_table";
import { SNAPSHOT_TERMS, type Terms, TermsContext } from "../data/terms";
import { useFetched } from "../data/use_fetched";
import { availableRows, type OnPageState, useRecording } from "../data/use_recording";
import { PageFrame, useDetails } from "../page/details";
import { Figures } from "../page/figures";
import { Headline } from "../page/headline";
import { TreesScope } from "../page/row_filter";
import { openRecording } from "../state/tabs";
import { ErrorMessage } from "../widgets/message";

/** Links to the program that an error without buffers names. */
function Programs({ found }: { found: FailureInLogdir }) {
  return (
    <ul class="oom-hints" aria-label="Dumps of the program" data-testid="failed-program">
      {found.fits_with !== null && <li data-testid="fits-with">{found.fits_with}</li>}
      {found.programs.map((program) => (
        <li key={program.id}>
          A dump contains the buffers:{" "}
          <button class="link" title="Open the compiled program" onClick={() => openRecording(program)}>
            {program.title}
          </button>
          , {formatBytes(program.reserved_bytes ?? program.peak_bytes)} of {program.memory}, in {program.run}
        </li>
      ))}
    </ul>
  );
}

/** How to get the buffers of a program that the compiler refused. */
function Recipe({ recipe }: { recipe: string }) {
  const [copied, setCopied] = useState<string | null>(null);
  const copy = (): void =>
    void copyText(recipe).then(
      () => setCopied("Copied"),
      (error: unknown) => setCopied(messageOf(error)),
    );
  return (
    <section class="oom-recipe" aria-label="How to see the buffers" data-testid="oom-recipe">
      <h2>See every buffer of this program</h2>
      <p>
        This text lists no buffers, and no program of this name is in the logdir. XLA dumps the complete
        program even when compilation fails. Run the script again with
      </p>
      <p>
        <code>{recipe}</code>{" "}
        <button data-testid="copy-recipe" onClick={copy}>
          Copy
        </button>{" "}
        <span class="muted" role="status">
          {copied}
        </span>
      </p>
      <p class="muted">
        FOLDER may be any folder below the logdir. Reload the page then: the program is linked here.
      </p>
    </section>
  );
}

/** Phases before the program runs. */
const NEEDED_TERMS: Terms = { ...SNAPSHOT_TERMS, live: "needed" };

interface Shared {
  api: Api;
  problems: Problem[];
}

interface Props extends Shared {
  summary: Summary;
  onState: OnPageState;
}

/** Page of an out-of-memory error: reason, advice, and memory contents as far as the text lists them. */
export function OomPage({ summary, onState, ...shared }: Props) {
  const { api } = shared;
  const { id } = summary;
  const read = (key: string, signal: AbortSignal) => api.memoryViewer({ id: key }, signal);
  const { first, all } = useRecording(api, id, read, onState);
  const error = first.error ?? all.error;
  if (error !== null) return <ErrorMessage error={error} />;
  if (first.value === null) return <div class="placeholder" aria-busy="true" />;
  return (
    <TermsContext.Provider
      value={first.value.out_of_memory?.used_is === "needed" ? NEEDED_TERMS : SNAPSHOT_TERMS}
    >
      <TreesScope api={api} recording={first.value.recording} everything={all.value}>
        <Loaded {...shared} view={first.value} everything={all.value} />
      </TreesScope>
    </TermsContext.Provider>
  );
}

function Loaded(props: Shared & { view: FirstView; everything: RecordingData | null }) {
  const { api, problems, view, everything } = props;
  const available = useMemo(() => availableRows(view, everything), [view, everything]);
  const { length } = view;
  const drawer = useDetails({ api, id: view.recording.id, available, length, times: null, moment: true });
  // Recipe shows how to dump a program, with a button.
  const hints = (view.out_of_memory?.sentences ?? [])
    .slice(2)
    .filter((sentence) => !sentence.includes("--xla_dump_to="));
  const { value: found } = useFetched(view.recording.id, (id, signal) => api.failedProgram({ id }, signal));
  return (
    <PageFrame drawer={drawer}>
      <Headline headline={view.verdict.alarm} caveats={view.caveats} problems={problems}>
        <OomHints sentences={hints} />
        {found !== null && found.programs.length > 0 && <Programs found={found} />}
        {found?.programs.length === 0 && found.recipe !== null && <Recipe recipe={found.recipe} />}
        <Figures view={view} available={available} />
        <Holders holders={found?.ledger ?? []} />
        <LinesBefore lines={view.out_of_memory?.lines_before ?? []} />
      </Headline>
      {everything !== null && everything.regions.length > 0 && (
        <AddressMap
          rows={everything.rows}
          regions={everything.regions}
          places={everything.addresses}
          position={view.peak}
          length={view.length}
          outOfMemory={view.out_of_memory}
          fileName={`${view.recording.title}-addresses`}
        />
      )}
      {view.recording.peak_bytes > 0 && view.recording.allocations > 0 && (
        <>
          <Breakdown view={view} available={available} program={everything?.program ?? null} />
          <Buffers view={view} available={available} program={everything?.program ?? null} />
        </>
      )}
    </PageFrame>
  );
}

/** What takes the device's memory, as the start-up lines of an inference engine state it. */
function Holders({ holders }: { holders: readonly Holder[] }) {
  if (holders.length === 0) return null;
  return (
    <table class="oom-holders" aria-label="Memory of the device" data-testid="oom-holders">
      <tbody>
        {holders.map(({ holder, bytes, share }) => (
          <tr key={holder}>
            <td class="number">{formatBytes(bytes)}</td>
            <td class="number">{formatShare(share, 1)}</td>
            <td>{holder}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The lines of the log before the error, folded. */
function LinesBefore({ lines }: { lines: readonly string[] }) {
  if (lines.length === 0) return null;
  return (
    <details class="oom-lines" data-testid="oom-lines">
      <summary>{`Log before the error: ${formatCounted(lines.length, "line")}`}</summary>
      <pre>{lines.join("\n")}</pre>
    </details>
  );
}

/** Advice, largest effect first. */
function OomHints({ sentences }: { sentences: string[] }) {
  if (sentences.length === 0) return null;
  return (
    <ul class="oom-hints" aria-label="Advice" data-testid="oom-hints">
      {sentences.map((sentence) => (
        <li key={sentence}>{sentence}</li>
      ))}
    </ul>
  );
}
