import { useEffect, useMemo, useState } from "preact/hooks";
import { formatBytes, formatCount, formatExact } from "../../base/units";
import { foldHosts, foldPlaces } from "../../layout/overview";
import type { Api } from "../../payload/api";
import type { CoResidency, Listing, OverviewRow, ResidentProgram } from "../../payload/generated/answers";
import type { AdviceById } from "../../payload/responses/names";
import { useFetched, useLastFetched } from "../data/use_fetched";
import { type PageProps, usePageState } from "../data/use_recording";
import { AssumedCapacity } from "../page/figures";
import { Headline } from "../page/headline";
import { openRecording } from "../state/tabs";
import { Middle } from "../widgets/labels";
import { ErrorMessage, Message, Notes } from "../widgets/message";
import { RecordingsTable } from "./recordings_table";

/** Advice reads every buffer, so only these rows have it; other recordings show theirs when they are opened. */
const MAX_ADVISED = 24;

/** Fetch the advice about each of the first rows, once for equal hosts, and one at a time to spare the server. */
function useAdvice(api: Api, rows: readonly OverviewRow[] | null): AdviceById {
  const [advice, setAdvice] = useState<AdviceById>(new Map());
  useEffect(() => {
    if (rows === null) return;
    const abort = new AbortController();
    const fetchAll = async (): Promise<void> => {
      const wanted = foldHosts(rows.filter(({ remedy }) => remedy === null));
      for (const { id, equal = [] } of wanted.slice(0, MAX_ADVISED)) {
        // The recording's own page shows the error.
        const found = await api.advice({ id }, abort.signal).catch(() => undefined);
        if (abort.signal.aborted) return;
        if (found !== undefined)
          setAdvice((before) => new Map([...before, ...equal.map((each) => [each.id, found] as const)]));
      }
    };
    void fetchAll();
    return () => abort.abort();
  }, [api, rows]);
  return advice;
}

interface CoResidencyProps {
  place: CoResidency;
  /** Hosts with equal programs in this memory. */
  hosts: readonly string[];
  rows: readonly OverviewRow[];
}

/** Programs in the chart; the sums include all of them. */
const MAX_LISTED = 12;

/** Programs that shared one memory: persistent bytes of each, and temporary bytes while it runs. */
function CoResidency({ place, hosts, rows }: CoResidencyProps) {
  const listed = place.programs.slice(0, MAX_LISTED);
  const largest = Math.max(...listed.map((program) => program.held_bytes + program.temporary_bytes), 1);
  const open = (id: string): void => {
    const row = rows.find((candidate) => candidate.id === id);
    if (row !== undefined) openRecording(row);
  };
  const on =
    hosts.length > 1
      ? ` on each of ${formatCount(hosts.length)} equal hosts`
      : place.host === ""
        ? ""
        : ` on ${place.host}`;
  return (
    <section
      class="co-residency"
      data-testid="co-residency"
      aria-label={`Programs sharing ${place.memory}${on}`}
    >
      <header class="section-head">
        <h2 title={hosts.join("\n")}>{`Programs sharing ${place.memory}${on}`}</h2>
        <ul class="co-residency-key" aria-label="Parts of the bars">
          {PARTS.map(([name, label]) => (
            <li key={name}>
              <i class={name} /> {label}
            </li>
          ))}
        </ul>
      </header>
      <p class="muted">{place.sentence}</p>
      <ol>
        {listed.map((program) => (
          <li key={program.id}>
            <button class="link" title={program.title} onClick={() => open(program.id)}>
              <Middle text={program.title} />
            </button>
            <Bar program={program} whole={largest} />
            <span class="numeric">{describeProgram(program)}</span>
          </li>
        ))}
      </ol>
      {place.programs.length > MAX_LISTED && (
        <p class="muted">{`and ${formatCount(place.programs.length - MAX_LISTED)} smaller ones`}</p>
      )}
    </section>
  );
}

const PARTS = [
  ["held", "persistent"],
  ["again", "shared with a larger program"],
  ["temporary", "temporary"],
] as const;

function Bar({ program, whole: largest }: { program: ResidentProgram; whole: number }) {
  const { held_bytes: persistent, again_bytes: shared, temporary_bytes: temporary } = program;
  const bytes = { held: persistent - shared, again: shared, temporary };
  return (
    <div class="co-residency-bar" aria-hidden="true">
      {PARTS.map(([name]) => (
        <i
          key={name}
          class={name}
          style={{ width: `${(100 * bytes[name]) / largest}%` }}
          title={formatExact(bytes[name])}
        />
      ))}
    </div>
  );
}

function describeProgram({
  held_bytes: persistent,
  temporary_bytes: temporary,
  runs,
}: ResidentProgram): string {
  const ran = runs === null ? "" : runs === 1 ? ", ran once" : `, ran ${formatCount(runs)} times`;
  return `${formatBytes(persistent)} persistent, ${formatBytes(temporary)} temporary${ran}`;
}

interface Props extends PageProps {
  run: string;
  listing: Listing;
}

/** Every program and memory of a run, the largest share of its limit first, and the programs that shared a memory. */
export function OverviewPage({ api, run, listing, onState }: Props) {
  // Roles and parts read every buffer, so the rows are shown without them first. A report has all at once.
  const figures = useFetched(api.report === null ? run : null, (name, signal) =>
    api.overviewFigures({ run: name }, signal),
  );
  const asked = api.report !== null || figures.value !== null || figures.error !== null;
  // Of a running job, peaks grow and snapshots are added.
  const version = useMemo(
    () =>
      `${run} ${listing.recordings.map(({ id, peak_bytes }) => `${id} ${formatBytes(peak_bytes)}`).join(" ")}`,
    [run, listing],
  );
  const all = useLastFetched(asked ? version : null, (_, signal) => api.overview({ run }, signal));
  const error = all.value === null ? all.error : null;
  const pending = all.value === null;
  const value = all.value ?? figures.value;
  const advice = useAdvice(api, all.value?.rows ?? null);
  usePageState(onState, error, !pending);
  if (error !== null) return <ErrorMessage error={error} />;
  if (value === null) return <div class="placeholder" aria-busy="true" />;
  return (
    <div class="page">
      <div class="content">
        <Headline
          headline={value.headline}
          caveats={value.caveats}
          problems={[...listing.problems, ...value.problems]}
        />
        <AssumedCapacity recordings={value.rows} />
        <Notes notes={listing.notes} />
        {value.rows.length === 0 ? (
          <Message title="No recordings in this run">
            The overview lists programs and allocators of a profile with at least one step
            (jax.profiler.trace), device memory profiles (jax.profiler.save_device_memory_profile), PyTorch
            snapshots, and out-of-memory errors.
          </Message>
        ) : (
          <RecordingsTable rows={value.rows} {...{ pending, advice, run }} />
        )}
        {foldPlaces(value.together).map(({ place, hosts }) => (
          <CoResidency key={`${place.host} ${place.memory}`} {...{ place, hosts }} rows={value.rows} />
        ))}
      </div>
    </div>
  );
}
