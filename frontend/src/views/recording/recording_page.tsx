import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import type { Api, Problem } from "../../payload/api";
import type { Everything, FirstView } from "../../payload/recording";
import type { Fetched } from "../fetched";
import { useFetched } from "../fetched";
import { ErrorMessage } from "../message";
import type { Tab, ViewState } from "../state";
import { TreesScope } from "../trees/trees_scope";
import { wordsOf, WordsContext } from "../words";
import { Details } from "./details";
import { Page } from "./page";
import { shownRows } from "./shown";
import { TimelinePart } from "./timeline_part";
import { useAxis } from "./use_axis";

export type PageState = "loading" | "ready" | "error";

/** What keys that move the inspected position need to know. */
export interface Steps {
  peak: number;
  length: number;
}

interface Props {
  api: Api;
  tab: Tab;
  /** Recording to show. */
  id: string;
  problems: Problem[];
  store: Store<ViewState>;
  dark: boolean;
  onState: (state: PageState, steps: Steps | null) => void;
}

/** One recording: a program's memory as compiled, or an allocator's as it ran. */
export function RecordingPage({ tab, id, onState, ...shared }: Props): JSX.Element {
  const { api } = shared;
  const first = useFetched(id, (key, signal) =>
    tab === "memory_profile" ? api.memoryProfile(key, signal) : api.memoryViewer(key, signal),
  );
  // Asked for only after the first view, so that it does not have to wait in line.
  const all = useFetched(first.value === null ? null : id, (key, signal) => api.rows(key, signal));
  const error = first.error ?? all.error;
  const ready = first.value !== null && all.value !== null;
  useEffect(() => {
    onState(error !== null ? "error" : ready ? "ready" : "loading", first.value);
  }, [error, ready, first.value]);

  if (first.error !== null) return <ErrorMessage error={first.error} />;
  if (first.value === null) return <div class="placeholder" aria-busy="true" />;
  return (
    <WordsContext.Provider value={wordsOf(first.value.recording)}>
      <TreesScope api={api} recording={first.value.recording} everything={all.value} store={shared.store}>
        <Loaded {...shared} view={first.value} all={all} />
      </TreesScope>
    </WordsContext.Provider>
  );
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
  const program = all.value?.program ?? null;
  const axis = useAxis(store, view, program);
  const shared = { api, store, dark };
  const timeline = <TimelinePart view={view} all={all} axis={axis} store={store} full={full} />;
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
            program={program}
            spans={all.value?.spans ?? null}
            axis={axis}
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
          times={program?.time_ns ?? null}
        />
      )}
    </main>
  );
}
