import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import { liveAt, liveBytes } from "../../layout/live_set";
import type { Api, Problem } from "../../payload/api";
import type { Everything, FirstView } from "../../payload/recording";
import { useFetched } from "../fetched";
import { ErrorMessage } from "../message";
import type { ViewState } from "../state";
import { Timeline } from "../timeline/timeline";
import { BufferCharts } from "./buffer_charts";
import { BufferTable } from "./buffer_table";
import { Categories } from "./categories";
import { Details } from "./details";
import { Caveats, Figures } from "./figures";
import { Inspected } from "./inspected";
import type { Shown } from "./shown";
import { shownRows } from "./shown";
import { usePosition } from "./use_position";
import { UsageChart } from "./usage_chart";

export type PageState = "loading" | "ready" | "error";

/** What keys that move the inspected position need to know. */
export interface Axis {
  peak: number;
  length: number;
}

const TIMELINE_HEIGHT = 360;

interface Props {
  api: Api;
  /** Recording to show. */
  id: string;
  problems: Problem[];
  store: Store<ViewState>;
  dark: boolean;
  onState: (state: PageState, axis: Axis | null) => void;
}

/** One program's memory: the answer in words, then the pictures that prove it. */
export function MemoryViewer({ api, id, problems, store, dark, onState }: Props): JSX.Element {
  const first = useFetched(id, (key, signal) => api.memoryViewer(key, signal));
  // Asked for only after the first view, so that it does not have to wait in line.
  const all = useFetched(first.value === null ? null : id, (key, signal) => api.rows(key, signal));
  const full = useStore(store, (state) => state.full);
  const error = first.error ?? all.error;
  const ready = first.value !== null && all.value !== null;
  useEffect(() => {
    onState(error !== null ? "error" : ready ? "ready" : "loading", first.value);
  }, [error, ready, first.value]);

  if (first.error !== null) return <ErrorMessage error={first.error} />;
  if (first.value === null) return <div class="placeholder" aria-busy="true" />;
  const view = first.value;
  const timeline =
    all.value === null ? (
      <div class="timeline-placeholder muted" style={{ height: full ? "100%" : `${TIMELINE_HEIGHT}px` }}>
        {all.error === null ? "Reading every buffer…" : ""}
      </div>
    ) : (
      <Timeline {...all.value} length={view.length} peak={view.peak} store={store} height={TIMELINE_HEIGHT} />
    );
  if (full) return <main class="full">{timeline}</main>;
  return (
    <Page api={api} view={view} everything={all.value} problems={problems} store={store} dark={dark}>
      {all.error !== null && <ErrorMessage error={all.error} />}
      {timeline}
    </Page>
  );
}

interface PageProps {
  api: Api;
  view: FirstView;
  everything: Everything | null;
  problems: Problem[];
  store: Store<ViewState>;
  dark: boolean;
  /** The timeline. */
  children: JSX.Element | (JSX.Element | false)[];
}

function Page({ api, view, everything, problems, store, dark, children }: PageProps): JSX.Element {
  const shown = useMemo(() => shownRows(view, everything), [view, everything]);
  const program = everything?.program ?? null;
  const selected = useStore(store, (state) => state.selected);
  const row = shown.indexOf(selected);
  return (
    <main class={row >= 0 ? "page with-details" : "page"}>
      <div class="content">
        <p class="headline" data-testid="headline">
          {view.headline}
        </p>
        <Figures view={view} />
        <Caveats caveats={view.caveats} problems={problems} />
        <section aria-label="Usage over the program">
          <UsageHeading />
          <UsageChart api={api} view={view} program={program} shown={shown} store={store} dark={dark} />
          {children}
        </section>
        <Breakdown view={view} shown={shown} everything={everything} store={store} dark={dark} />
      </div>
      {row >= 0 && selected !== null && (
        <Details
          api={api}
          id={view.recording.id}
          number={selected}
          row={row}
          rows={shown.rows}
          length={view.length}
          store={store}
          dark={dark}
        />
      )}
    </main>
  );
}

function UsageHeading(): JSX.Element {
  return (
    <header class="section-head">
      <h2>Memory over the program</h2>
      <ul class="lines" aria-label="Lines of the chart">
        <li class="live">live</li>
        <li class="unpadded">live, unpadded</li>
        <li class="reserved">reserved</li>
      </ul>
      <span class="muted hint">
        click to inspect · drag to zoom in · wheel to zoom · double click for all
      </span>
    </header>
  );
}

interface BreakdownProps {
  view: FirstView;
  shown: Shown;
  everything: Everything | null;
  store: Store<ViewState>;
  dark: boolean;
}

/** What is live at the inspected position. Away from the peak it takes all rows to know. */
function Breakdown({ view, shown, everything, store, dark }: BreakdownProps): JSX.Element {
  const position = usePosition(store, view);
  const { rows, complete } = shown;
  const known = complete || position === view.peak;
  const live = useMemo(() => (known ? liveAt(rows, position) : new Uint32Array(0)), [rows, position, known]);
  return (
    <section aria-label="Live at the inspected position">
      <Inspected
        position={position}
        peak={view.peak}
        length={view.length}
        bytes={complete ? liveBytes(rows, live) : position === view.peak ? view.recording.peak_bytes : null}
        count={complete ? live.length : null}
        program={everything?.program ?? null}
        store={store}
      />
      <Categories rows={rows} live={live} dark={dark} />
      <BufferCharts shown={shown} live={live} store={store} dark={dark} />
      <BufferTable
        shown={shown}
        live={live}
        position={position}
        length={view.length}
        fileName={`${view.recording.title}-${view.recording.memory}-at-${position}.csv`}
        store={store}
        dark={dark}
      />
    </section>
  );
}
