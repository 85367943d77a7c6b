import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import type { Api, Problem } from "../../payload/api";
import type { Everything, FirstView } from "../../payload/recording";
import type { Fetched } from "../fetched";
import { useFetched } from "../fetched";
import { ErrorMessage } from "../message";
import type { ViewState } from "../state";
import { Timeline } from "../timeline/timeline";
import { Details } from "./details";
import { Page } from "./page";
import { shownRows } from "./shown";

export type PageState = "loading" | "ready" | "error";

/** What keys that move the inspected position need to know. */
export interface Axis {
  peak: number;
  length: number;
}

const TIMELINE_HEIGHT = 360;
/** With its toolbar, minimap and legend. */
const PLACE_HEIGHT = TIMELINE_HEIGHT + 100;

interface Props {
  api: Api;
  /** Recording to show. */
  id: string;
  problems: Problem[];
  store: Store<ViewState>;
  dark: boolean;
  onState: (state: PageState, axis: Axis | null) => void;
}

/** One program's memory. */
export function MemoryViewer({ id, onState, ...shared }: Props): JSX.Element {
  const { api } = shared;
  const first = useFetched(id, (key, signal) => api.memoryViewer(key, signal));
  // Asked for only after the first view, so that it does not have to wait in line.
  const all = useFetched(first.value === null ? null : id, (key, signal) => api.rows(key, signal));
  const error = first.error ?? all.error;
  const ready = first.value !== null && all.value !== null;
  useEffect(() => {
    onState(error !== null ? "error" : ready ? "ready" : "loading", first.value);
  }, [error, ready, first.value]);

  if (first.error !== null) return <ErrorMessage error={first.error} />;
  if (first.value === null) return <div class="placeholder" aria-busy="true" />;
  return <Loaded {...shared} view={first.value} all={all} />;
}

interface LoadedProps {
  api: Api;
  view: FirstView;
  all: Fetched<Everything>;
  problems: Problem[];
  store: Store<ViewState>;
  dark: boolean;
}

/** The page, or the timeline alone, with the drawer of the selected buffer at its side. */
function Loaded({ api, view, all, problems, store, dark }: LoadedProps): JSX.Element {
  const full = useStore(store, (state) => state.full);
  const selected = useStore(store, (state) => state.selected);
  const shown = useMemo(() => shownRows(view, all.value), [view, all.value]);
  const row = shown.indexOf(selected);
  const open = row >= 0 && selected !== null;
  const shared = { api, store, dark };
  const timeline = <TimelinePart view={view} all={all} store={store} full={full} />;
  return (
    <main class={`${full ? "full" : "page"} ${open ? "with-details" : ""}`}>
      <div class="content">
        {full ? (
          timeline
        ) : (
          <Page
            {...shared}
            view={view}
            shown={shown}
            program={all.value?.program ?? null}
            problems={problems}
          >
            {timeline}
          </Page>
        )}
      </div>
      {open && (
        <Details
          {...shared}
          id={view.recording.id}
          number={selected}
          row={row}
          rows={shown.rows}
          length={view.length}
        />
      )}
    </main>
  );
}

interface TimelineProps {
  view: FirstView;
  all: Fetched<Everything>;
  store: Store<ViewState>;
  full: boolean;
}

/** The timeline once every buffer has come; until then its place. */
function TimelinePart({ view, all, store, full }: TimelineProps): JSX.Element {
  if (all.error !== null) return <ErrorMessage error={all.error} />;
  if (all.value === null)
    return (
      <div class="timeline-placeholder muted" style={{ height: full ? "100%" : `${PLACE_HEIGHT}px` }}>
        Reading every buffer…
      </div>
    );
  return (
    <Timeline {...all.value} length={view.length} peak={view.peak} store={store} height={TIMELINE_HEIGHT} />
  );
}
