import { useEffect, useReducer, useRef } from "preact/hooks";
import {
  durationText,
  type LiveKind,
  liveStatus,
  type LiveStatus,
  snapshotsOf,
  snapshotText,
} from "../../layout/live";
import type { Summary } from "../../payload/generated/answers";
import type { Answers } from "../data/use_fetched";
import { store, useViewState } from "../state/view_state";

interface Props {
  /** Recordings of the run; null until they are known. */
  recordings: readonly Summary[] | null;
  answers: { readonly current: Answers };
}

const TICK_MS = 1000;

/** Whether the run is of a running job, the time of its last sample, and a button that pauses. */
export function LiveStatusLine({ recordings, answers }: Props) {
  const paused = useViewState((state) => state.paused);
  const status = recordings === null ? null : liveStatus(recordings, paused, answers.current, Date.now());
  useTicks(status !== null);
  return (
    <div class="live-line">
      {status !== null && (
        <>
          <span class={`live-status live-${status.kind}`} data-testid="live-status" data-kind={status.kind}>
            <span>
              <i aria-hidden="true" />
              {TEXTS[status.kind].label}
            </span>{" "}
            <span>{detailOf(status)}</span>
          </span>
          <button
            class="quiet pause"
            data-testid="pause"
            aria-label={paused ? "Follow the job" : "Pause"}
            title={paused ? "Follow the job again" : "Pause: keep the page as it is while the job goes on"}
            onClick={() => store.set({ paused: !paused })}
          >
            <svg width="10" height="12" aria-hidden="true">
              <path d={paused ? "M0 0 10 6 0 12Z" : "M0 0H3V12H0ZM7 0H10V12H7Z"} fill="currentColor" />
            </svg>
          </button>
        </>
      )}
      <span class="unseen" role="status" data-testid="live-news">
        {useNews(status, recordings)}
      </span>
    </div>
  );
}

/** What the page shows of each status, and what a screen reader says. */
const TEXTS: Record<LiveKind, { label: string; news: string }> = {
  live: { label: "live", news: "Following the running job." },
  paused: { label: "paused", news: "Paused." },
  silent: { label: "no new samples", news: "No new samples." },
  failing: { label: "no answer", news: "No answer from the server." },
};

/** Return what follows the label: the time of the last sample, unless something is wrong. */
function detailOf({ kind, sampleMs, silentMs }: LiveStatus): string {
  if (kind === "silent") return `for ${durationText(silentMs)}`;
  if (kind === "failing") return "from the server";
  return sampleMs === null ? "" : new Date(sampleMs).toLocaleTimeString("en-GB");
}

/** Return what a screen reader should say: the last change of the status, or the last new snapshot. */
function useNews(status: LiveStatus | null, recordings: readonly Summary[] | null): string {
  const run = recordings?.[0]?.run ?? null;
  const snapshots = snapshotsOf(recordings ?? []);
  const kind = status?.kind ?? null;
  const last = useRef({ run, kind, snapshots: snapshots.length, text: "" });
  const before = last.current;
  if (before.run !== run) last.current = { run, kind, snapshots: snapshots.length, text: "" };
  else if (before.kind !== kind)
    last.current = { ...before, kind, text: kind === null ? "The job has ended." : TEXTS[kind].news };
  if (last.current.snapshots < snapshots.length) {
    const newest = snapshots[snapshots.length - 1];
    last.current = {
      ...last.current,
      snapshots: snapshots.length,
      text: `New snapshot: ${snapshotText(newest)}`,
    };
  }
  return last.current.text;
}

/** Render once a second: silence grows without news. */
function useTicks(active: boolean): void {
  const [, tick] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    if (!active) return;
    const timer = setInterval(() => tick(undefined), TICK_MS);
    return () => clearInterval(timer);
  }, [active]);
}
