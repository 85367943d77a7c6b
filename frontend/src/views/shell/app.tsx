import { useEffect, useErrorBoundary, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatCount } from "../../base/units";
import { liveOf } from "../../layout/live";
import type { Api } from "../../payload/api";
import {
  chooseMemory,
  chooseProgram,
  hostsOf,
  listedHost,
  type RecordingChoice,
  type RecordingOptions,
} from "../../payload/choose_recording";
import type { Summary } from "../../payload/generated/answers";
import type { RecordingsQuery } from "../../payload/generated/client";
import { useSidebar } from "../browser/host_window";
import { PrintingContext, usePrinting } from "../browser/printing";
import { ComparePage } from "../compare/page";
import { SourceCodeContext } from "../data/source_code";
import { termsOf } from "../data/terms";
import { useFetched, useFollowed } from "../data/use_fetched";
import { type PageState, type Positions, usePageState } from "../data/use_recording";
import { type PictureNames, PictureNamesContext } from "../drawing/save_picture";
import { FitPage } from "../fit/page";
import { FleetPage } from "../fleet/fleet";
import { useHasFleet } from "../fleet/section";
import { OverviewPage } from "../overview/page";
import { RecordingPage } from "../recording/recording_page";
import { WatchPage } from "../recording/watch_page";
import { SnapshotPage } from "../snapshots/device_profile";
import { placeOfRecording } from "../state/tabs";
import { applyTheme, isDark } from "../state/theme";
import { store, type Tab, useViewState, type ViewState } from "../state/view_state";
import { ErrorMessage } from "../widgets/message";
import { EmptyPage } from "./empty_page";
import { Header } from "./header";
import { bindKeys, Help } from "./keys";
import { PasteBox, usePaste } from "./paste";
import { NotInReport, tabsOf } from "./report";

/** Return the title of saved pictures: run, host, program, memory, and what the charts are restricted to. */
function pictureNames(state: ViewState, run: string, chosen: Summary | null): PictureNames {
  const { a, b } = state;
  const compared = a === "" || b === "" ? "" : `A: ${a}; B: ${b}`;
  if (state.tab === "compare") return { run, lines: [run, compared].filter(Boolean) };
  if (chosen === null) return { run: state.tab === "fit" ? "" : run, lines: [run].filter(Boolean) };
  const place = [run, chosen.host, chosen.title, chosen.memory].filter(Boolean).join(" · ");
  const shown = [
    positionText(state, chosen),
    state.row_filter !== "" && `only ${state.row_filter}`,
    state.search !== "" && `search: ${state.search}`,
  ];
  return { run, lines: [place, shown.filter(Boolean).join("; ")].filter(Boolean) };
}

function positionText({ position }: ViewState, chosen: Summary): string {
  if (chosen.axis === "INSTANT") return "";
  return position === null ? "at the peak" : `at ${termsOf(chosen).position} ${formatCount(position)}`;
}

/** Tabs for one recording choose it among those of the run; the others show all of them. */
const CHOOSERS: Record<Tab, ((recordings: Summary[], choice: RecordingChoice) => RecordingOptions) | null> = {
  overview: null,
  memory_viewer: chooseProgram,
  memory_profile: chooseMemory("TIME"),
  snapshots: chooseMemory("INSTANT"),
  compare: null,
  fit: null,
  fleet: null,
};

/** How soon new runs, and new samples of a running job, are asked for. */
const RUNS_INTERVAL_MS = 15_000;
const LIVE_INTERVAL_MS = 2_000;

export function App({ api }: { api: Api }) {
  const printing = usePrinting();
  applyTheme(useViewState(isDark) && !printing);
  const boundary = useErrorBoundary();
  const broken = boundary[0] as Error | undefined;
  const [help, setHelp] = useState(false);
  const { report } = api;
  /** Return whether a tab reads what it shows itself, without the recordings of the run. A report has no fleet. */
  const isOfLogdir = (of: Tab): boolean => of === "fit" || (of === "fleet" && report === null);
  const paste = usePaste(report === null);
  const [pasted, setPasted] = useState(0);
  const steps = useRef<Positions | null>(null);
  const contents = useRef<HTMLElement>(null);
  const wantedTab = useViewState((state) => state.tab);
  const tab = wantedTab === "" ? "overview" : wantedTab;
  const wantedRun = useViewState((state) => state.run);
  const host = useViewState((state) => state.host);
  const module = useViewState((state) => state.module);
  const space = useViewState((state) => state.space);
  const full = useViewState((state) => state.timeline_only);
  const paused = useViewState((state) => state.paused);

  const runs = useFollowed(
    api,
    `runs ${pasted}`,
    (changes, _, signal) => changes.runs(signal),
    () => (report === null ? RUNS_INTERVAL_MS : null),
  );
  // Without a choice, XProf's sidebar is at its first session.
  const session = useSidebar("").runs?.[0];
  const newest = (runs.value?.runs.find(({ name }) => name === session) ?? runs.value?.runs[0])?.name ?? "";
  const run = wantedRun === "" ? newest : wantedRun;
  const listed = tab === "overview" || report !== null ? "" : listedHost(runs.value, run, host);
  const isWaiting = run === "" || (host !== "" && runs.value === null);
  // The candidates of a fit are shown from their records, and devices of a fleet from summaries: no recording is read.
  const listing = useFollowed(
    api,
    isWaiting || isOfLogdir(tab) ? null : JSON.stringify({ run, host: listed }),
    (changes, key, signal) => changes.recordings(JSON.parse(key) as RecordingsQuery, signal),
    (found) =>
      liveOf(found?.recordings ?? []).length > 0 && !paused && report === null ? LIVE_INTERVAL_MS : null,
  );
  // After the runs: one search of the logdir answers both.
  const fits = useFetched(runs.value === null ? null : "fit", (_, signal) => api.fit(signal));
  const hasFit = fits.value !== null && fits.value.steps.length > 0;
  const hasFleet = useHasFleet(runs.value, run, listing.value) || tab === "fleet";
  const has = { fit: hasFit, fleet: hasFleet };
  const options = useMemo(() => {
    const found = CHOOSERS[tab]?.(listing.value?.recordings ?? [], { host, module, space }) ?? null;
    if (listing.value === null || found === null) return null;
    return listed === "" ? found : { ...found, hosts: [...hostsOf(runs.value, run)] };
  }, [listing.value, tab, host, module, space]);

  const error = broken ?? runs.error ?? listing.error ?? (tab === "fit" ? fits.error : null);
  const chosen = error === null ? (options?.chosen ?? null) : null;

  useEffect(() => {
    const named = chosen?.kind === "program" ? `${chosen.title} ` : "";
    document.title = chosen === null ? "Memory" : `${named}${chosen.memory} · Memory`;
    // The user may have gone on since this was rendered.
    const now = store.get();
    if (now.tab !== tab || now.run !== wantedRun) return;
    if (now.host !== host || now.module !== module || now.space !== space) return;
    // Defaults are written to the URL, so that a shared link means the same after a newer run has appeared.
    if (chosen !== null)
      store.fill({ run, host: chosen.host, module: options?.module ?? "", space: chosen.memory });
    else if (listing.value !== null && CHOOSERS[tab] === null) store.fill({ run });
  }, [chosen, listing.value, tab, wantedRun, host, module, space]);
  // An error in one recording must not hide the next.
  useEffect(boundary[1], [wantedRun, tab, host, module, space]);
  useEffect(() => bindKeys({ steps: () => steps.current, onHelp: () => setHelp(true) }), [store]);
  const setPageState = (state: PageState, shown: Positions | null = null): void => {
    document.documentElement.dataset["state"] = state;
    steps.current = shown;
  };

  const problems = listing.value?.problems ?? [];
  const noRuns = runs.value?.runs.length === 0;
  useEffect(() => {
    // Without a program, there are only errors to show.
    if (noRuns && hasFit && tab === "overview") store.fill({ tab: "fit" });
  }, [noRuns, hasFit, tab]);
  useLayoutEffect(() => {
    if (wantedTab !== "" || listing.value === null) return;
    const { recordings, opens } = listing.value;
    const first = recordings.find(({ id }) => id === opens);
    store.fill(first === undefined ? { tab: tabsOf(report, has)[0] } : placeOfRecording(first));
  }, [wantedTab, listing.value]);
  const available = wantedTab !== "" && tabsOf(report, has).includes(tab);
  const fullListing = CHOOSERS[tab] === null && available && error === null ? listing.value : null;
  const empty = tab !== "fit" && (noRuns || (wantedTab !== "" && listing.value !== null && !available));
  const settled = error !== null || empty || options !== null || fullListing !== null;
  const hasPage = chosen !== null || fullListing !== null || (isOfLogdir(tab) && error === null && !empty);
  usePageState(hasPage ? null : setPageState, error, settled);

  const shared = { api, onState: setPageState };
  const one = { ...shared, problems, key: chosen?.id };
  const page = () => {
    if (tab === "fit")
      return error !== null ? null : <FitPage {...shared} fit={fits.value} runs={runs.value} />;
    if (tab === "fleet" && report === null && run !== "" && error === null)
      return <FleetPage {...shared} key={run} run={run} />;
    if (fullListing !== null && runs.value !== null)
      return tab === "compare" ? (
        <ComparePage {...shared} key={run} runs={runs.value} run={run} listing={fullListing} />
      ) : (
        <OverviewPage {...shared} key={run} run={run} listing={fullListing} />
      );
    if (error !== null) return null;
    if (chosen === null && report !== null && listing.value !== null) return <NotInReport report={report} />;
    if (chosen === null)
      return (
        <EmptyPage
          {...{ api, run, runs: runs.value, listing: listing.value, options, tab }}
          onPaste={paste.open}
        />
      );
    if (chosen.kind === "watch")
      return <WatchPage {...one} summary={chosen} recordings={listing.value?.recordings ?? []} />;
    return tab === "snapshots" ? (
      <SnapshotPage
        {...one}
        summary={chosen}
        snapshots={listing.value?.recordings.filter(({ axis }) => axis === "INSTANT").length ?? 0}
      />
    ) : (
      <RecordingPage {...one} tab={tab} id={chosen.id} allocations={chosen.allocations} />
    );
  };
  const names = (): PictureNames => pictureNames(store.get(), run, chosen);
  return (
    <div class={full ? "app app-full" : "app"}>
      {/* No link: the fragment of the URL is the state of the page. */}
      <button class="skip-link" data-testid="skip-link" onClick={() => contents.current?.focus()}>
        Skip to contents
      </button>
      <Header
        {...{ api, run, options, has }}
        runs={runs.value}
        recordings={listing.value?.recordings ?? null}
        answers={listing.answers}
        onPaste={paste.open}
        onHelp={() => setHelp(true)}
      />
      <main ref={contents} tabindex={-1} data-testid="contents">
        {error !== null && <ErrorMessage error={error} />}
        <PrintingContext.Provider value={printing}>
          <PictureNamesContext.Provider value={names}>
            {printing && <PrintTitle lines={names().lines} />}
            <SourceCodeContext.Provider value={report === null ? api : null}>
              {page()}
            </SourceCodeContext.Provider>
          </PictureNamesContext.Provider>
        </PrintingContext.Provider>
      </main>
      {help && <Help onClose={() => setHelp(false)} />}
      {paste.given !== null && (
        <PasteBox
          api={api}
          given={paste.given}
          onClose={paste.close}
          onPasted={() => setPasted(pasted + 1)}
        />
      )}
    </div>
  );
}

/** What the printed page is about, in place of tabs and pickers. */
function PrintTitle({ lines }: { lines: readonly string[] }) {
  return (
    <header class="print-title" data-testid="print-title">
      {lines.map((line) => (
        <p key={line}>{line}</p>
      ))}
    </header>
  );
}
