import { useEffect, useMemo, useState } from "preact/hooks";
import { defaultPair, findSelectedChange, hasSame, type RecordingPair } from "../../layout/compare/changes";
import type { Api } from "../../payload/api";
import type { ComparedSide, Comparison, Listing, Runs } from "../../payload/generated/answers";
import type { ChangeCausesQuery, CompareQuery } from "../../payload/generated/client";
import { CallGraphSection } from "../call_graph/call_graph";
import { PROGRAM_TERMS, TermsContext, termsOf } from "../data/terms";
import { useFetched, useLastFetched } from "../data/use_fetched";
import { type PageProps, usePageState } from "../data/use_recording";
import { PageFrame } from "../page/details";
import { Headline } from "../page/headline";
import { store, useViewState } from "../state/view_state";
import { ErrorMessage, Message } from "../widgets/message";
import { ChangeDetails } from "./change_details";
import { ChangesTable } from "./changes_table";
import { Sides } from "./sides";
import { WaterfallSection } from "./waterfall";

/** What the programmer or the compiler changed between the peaks of two programs, as `check --baseline` says it. */
function Causes({ api, comparison }: { api: Api; comparison: Comparison }) {
  const query = causesQuery(comparison);
  const { value, error } = useFetched(query && JSON.stringify(query), (key, signal) =>
    api.changeCauses(JSON.parse(key) as ChangeCausesQuery, signal),
  );
  if (query === null) return null;
  return (
    <section aria-label="Causes" data-testid="causes" aria-busy={value === null && error === null}>
      <h2>Causes</h2>
      {error !== null && <ErrorMessage error={error} />}
      {value === null && error === null && <p class="muted">Looking for what changed in the programs…</p>}
      {value?.causes.length === 0 && (
        <p class="muted">
          No cause is known for what changed. The steps and arrays below are the differences.
        </p>
      )}
      {value !== null && (
        <ul class="causes">
          {value.causes.map(({ text }) => (
            <li key={text}>
              <Sentence text={text} />
            </li>
          ))}
          {value.rest !== "" && <li>{value.rest}</li>}
        </ul>
      )}
    </section>
  );
}

/** A sentence whose names are between backticks, set as code. */
function Sentence({ text }: { text: string }) {
  const parts = text.split("`");
  if (parts.length % 2 === 0) return <>{text}</>; // a name contains one
  return <>{parts.map((part, i) => (i % 2 === 1 ? <code key={i}>{part}</code> : part))}</>;
}

/** Return what to ask; null for other recordings than two programs, other moments than peaks, and equal sides. */
function causesQuery({ a, b, changes }: Comparison): ChangeCausesQuery | null {
  const compared = isPeakOfProgram(a) && isPeakOfProgram(b) && a.recording.id !== b.recording.id;
  const differ = Object.entries(changes).some(([change, { entries }]) => change !== "same" && entries > 0);
  return compared && differ ? { a: a.recording.id, b: b.recording.id } : null;
}

function isPeakOfProgram({ recording, position }: ComparedSide): boolean {
  return recording.kind === "program" && position === recording.peak_position;
}

interface Props extends PageProps {
  runs: Runs;
  run: string;
  listing: Listing;
}

/** Comparison of two recordings, or of two moments of one. */
export function ComparePage({ api, runs, run, listing, onState }: Props) {
  const pair = usePair(api, runs, run, listing);
  const at_b = useViewState((state) => state.at_b);
  const by = useViewState((state) => state.compare_by);
  const query: CompareQuery | null = pair === null ? null : { ...pair, at_b, by };
  const { value, error, waiting } = useLastFetched(
    query === null ? null : JSON.stringify(query),
    (key, signal) => api.compare(JSON.parse(key) as CompareQuery, signal),
  );
  const [graphReady, setGraphReady] = useState(false);
  usePageState(onState, error, !waiting && (value === null || !hasCallGraph(value) || graphReady));
  useEffect(() => {
    // Written to the URL, so that a shared link means the same after a newer run has appeared.
    if (pair !== null && store.get().tab === "compare" && store.get().run === run) store.fill(pair);
  }, [pair]);
  const change = useViewState((state) => state.selected_change);
  const selected = useMemo(
    () => (value === null ? null : findSelectedChange(value, change)),
    [value, change],
  );
  const drawer =
    value === null || selected === null || error !== null ? null : (
      <ChangeDetails api={api} comparison={value} found={selected} />
    );
  return (
    <TermsContext.Provider value={value === null ? PROGRAM_TERMS : termsOf(value.b.recording)}>
      <PageFrame drawer={drawer}>
        <Sides api={api} runs={runs} pair={pair} comparison={value} />
        {error !== null && <ErrorMessage error={error} />}
        {value === null && error === null && pair !== null && <div class="placeholder" aria-busy="true" />}
        {pair === null && (
          <Message title="This run has nothing to compare">Choose another run above.</Message>
        )}
        {value !== null && error === null && (
          <>
            <Headline headline={value.headline} caveats={caveats(value)} problems={listing.problems} />
            <Causes api={api} comparison={value} />
            <WaterfallSection comparison={value} />
            <ChangesTable comparison={value} />
            {hasCallGraph(value) && (
              <CallGraphSection
                api={api}
                id={value.b.recording.id}
                base={value.a.recording.id}
                devices={1}
                fileName="change"
                onReady={setGraphReady}
              />
            )}
          </>
        )}
      </PageFrame>
    </TermsContext.Provider>
  );
}

/** Call graph of the change, like pprof's --diff_base; empty for a recording against itself. */
function hasCallGraph({ a, b }: Comparison): boolean {
  return a.recording.kind === "device_profile" && a.recording.id !== b.recording.id;
}

function caveats({ a, b }: Comparison): Comparison["a"]["recording"]["caveats"] {
  const of = (name: string, side: Comparison["a"]): Comparison["a"]["recording"]["caveats"] =>
    side.recording.caveats.map((caveat) => ({ ...caveat, text: `${name}: ${caveat.text}` }));
  return a.recording.id === b.recording.id ? a.recording.caveats : [...of("A", a), ...of("B", b)];
}

/** Return the compared pair: from the state, or the most likely one. Null until known, or if there is none. */
function usePair(api: Api, runs: Runs, run: string, listing: Listing): RecordingPair | null {
  const a = useViewState((state) => state.a);
  const b = useViewState((state) => state.b);
  const at_a = useViewState((state) => state.at_a);
  const names = runs.runs.map(({ name }) => name);
  const place = names.indexOf(run);
  // In turns the previous runs and those after it, the nearest first.
  const near = Array.from({ length: MAX_READ }, (_, i) => [names.at(place + 1 + i), names[place - 1 - i]])
    .flat()
    .filter((name): name is string => name !== undefined)
    .slice(0, MAX_READ);
  const open = a === "" || b === "";
  const alone = useMemo(() => defaultPair(listing.recordings, []), [listing]);
  const needed = open && alone !== null && alone.a === alone.b && near.length > 0 ? near : null;
  const compared = useFetched(needed && JSON.stringify(needed), async (key, signal) => {
    for (const name of JSON.parse(key) as string[]) {
      const { recordings } = await api.recordings({ run: name }, signal);
      if (hasSame(listing.recordings, recordings)) return { name, recordings };
    }
    return { name: "", recordings: [] };
  });
  return useMemo(() => {
    if (!open) return { a, b, at_a };
    const waiting = needed !== null && compared.value === null && compared.error === null;
    const others = near.length === 0 ? null : (compared.value?.recordings ?? []);
    const isLater = names.indexOf(compared.value?.name ?? "") < place;
    return waiting ? null : defaultPair(listing.recordings, others, isLater);
  }, [open, a, b, at_a, near.join("\n"), listing, compared.value, compared.error]);
}

/** Runs that are read to find one with the same program. */
const MAX_READ = 6;
