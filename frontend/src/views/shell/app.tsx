import type { JSX } from "preact";
import { useEffect, useErrorBoundary, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import type { Api } from "../../payload/api";
import type { Options } from "../../payload/choose";
import { choose, chooseAllocator } from "../../payload/choose";
import { useFetched } from "../fetched";
import type { PageState, Steps } from "../recording/recording_page";
import { RecordingPage } from "../recording/recording_page";
import { ErrorMessage, Message } from "../message";
import type { Tab, ViewState } from "../state";
import { useDark } from "../theme";
import { Header } from "./header";
import { Help } from "./help";
import { NoEvents } from "./no_events";
import { openTab } from "./tabs";
import { bindKeys } from "./keys";

interface Props {
  api: Api;
  /** URL of the page on its own, without a fragment. */
  pageUrl: string;
  store: Store<ViewState>;
}

const CHOOSERS = { memory_viewer: choose, memory_profile: chooseAllocator };

export function App({ api, pageUrl, store }: Props): JSX.Element {
  const dark = useDark(store);
  const boundary = useErrorBoundary();
  const broken = boundary[0] as Error | undefined;
  const [help, setHelp] = useState(false);
  const steps = useRef<Steps | null>(null);
  const tab = useStore(store, (state) => state.tab);
  const wantedRun = useStore(store, (state) => state.run);
  const host = useStore(store, (state) => state.host);
  const module = useStore(store, (state) => state.module);
  const space = useStore(store, (state) => state.space);
  const full = useStore(store, (state) => state.full);

  const runs = useFetched("runs", (_, signal) => api.runs(signal));
  const run = wantedRun === "" ? (runs.value?.runs[0]?.name ?? "") : wantedRun;
  const listing = useFetched(run === "" ? null : run, (name, signal) => api.recordings(name, signal));
  const options = useMemo(
    () => (listing.value === null ? null : CHOOSERS[tab](listing.value.recordings, { host, module, space })),
    [listing.value, tab, host, module, space],
  );

  const error = broken ?? runs.error ?? listing.error;
  const chosen = error === null ? (options?.chosen ?? null) : null;

  useEffect(() => {
    // What was chosen for lack of a choice is named in the URL: shared, it means the same when a newer run has come.
    if (chosen === null) return;
    const named = chosen.kind === "program" ? chosen.title : "";
    store.set({ run, host: chosen.host, module: named, space: chosen.memory });
    document.title = `${`${named} ${chosen.memory}`.trim()} · Memory`;
  }, [chosen]);
  // What could not be drawn of one recording says nothing about the next.
  useEffect(boundary[1], [wantedRun, tab, host, module, space]);
  useLayoutEffect(() => {
    document.documentElement.dataset["theme"] = dark ? "dark" : "light";
  }, [dark]);
  useEffect(() => bindKeys({ store, steps: () => steps.current, onHelp: () => setHelp(true) }), [store]);
  const setPageState = (state: PageState, shown: Steps | null = null): void => {
    document.documentElement.dataset["state"] = state;
    steps.current = shown;
  };

  const problems = listing.value?.problems ?? [];
  const allocators =
    tab === "memory_viewer" && (listing.value?.recordings.some(({ kind }) => kind === "allocator") ?? false);
  const empty =
    error === null ? <Nothing {...{ runs: runs.value, options, problems, allocators, tab, store }} /> : null;
  const settled = error !== null || runs.value?.runs.length === 0 || options !== null;
  useEffect(() => {
    if (chosen === null) setPageState(!settled ? "loading" : error === null ? "ready" : "error");
  }, [chosen, settled, error]);

  return (
    <div class={full ? "app app-full" : "app"}>
      <Header
        runs={runs.value}
        run={run}
        options={options}
        pageUrl={pageUrl}
        store={store}
        onHelp={() => setHelp(true)}
      />
      {error !== null && <ErrorMessage error={error} />}
      {chosen === null ? (
        empty
      ) : (
        <RecordingPage
          key={chosen.id}
          api={api}
          tab={tab}
          id={chosen.id}
          problems={problems}
          store={store}
          dark={dark}
          onState={setPageState}
        />
      )}
      {help && <Help onClose={() => setHelp(false)} />}
    </div>
  );
}

interface NothingProps {
  /** Whether the other tab has something to show. */
  allocators: boolean;
  tab: Tab;
  store: Store<ViewState>;
  runs: { runs: unknown[]; message: string | null; logdir: string } | null;
  options: Options | null;
  problems: { file: string; text: string }[];
}

/** Why there is no recording to show, and what to do. */
function Nothing({ runs, options, problems, allocators, tab, store }: NothingProps): JSX.Element {
  if (runs !== null && runs.runs.length === 0)
    return (
      <Message title="No profile to show">
        {runs.message ??
          `Nothing was captured below ${runs.logdir}. Write a profile there with jax.profiler.trace, then reload.`}
      </Message>
    );
  if (options === null) return <div class="placeholder" aria-busy="true" />;
  if (tab === "memory_profile" && options.missing === null && problems.length === 0)
    return <NoEvents store={store} />;
  const [title, advice] =
    options.missing !== null
      ? [options.missing, "Choose one of those listed above."]
      : problems.length > 0
        ? ["Nothing could be read from this run", "This is what is wrong with its files."]
        : [
            "This run holds no compiled program",
            "A profile carries the programs that ran while it was captured: capture at least one step with jax.profiler.trace.",
          ];
  const advised = allocators ? (
    <>
      {advice} Its allocators did write events:{" "}
      <button class="link" data-testid="to-memory-profile" onClick={() => openTab(store, "memory_profile")}>
        Memory Profile
      </button>
    </>
  ) : (
    advice
  );
  return (
    <>
      <Message title={title}>{advised}</Message>
      {problems.map(({ file, text }) => (
        <Message key={file} error title={file}>
          {text}
        </Message>
      ))}
    </>
  );
}
