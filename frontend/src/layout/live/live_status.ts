import type { Summary } from "../../payload/generated/answers";

/** How well the page keeps up with a running job. */
export type LiveKind = "live" | "paused" | "silent" | "failing";

export interface LiveStatus {
  kind: LiveKind;
  /** Time of the last sample, in ms since 1970; null before the first. */
  sampleMs: number | null;
  /** Time without a new sample, in ms; 0 unless silent. */
  silentMs: number;
}

/** What the page knows about answers: views/data/use_followed.ts. */
export interface Heard {
  last: number;
  changed: number | null;
  failures: number;
}

/** A job is silent without a sample for this many times its interval, and for at least this long. */
const MISSED = 5;
const SILENT_MS = 10_000;
/** A single failed request is no news. */
const FAILURES = 2;

/** Return the recordings that a running job still writes. */
export function liveOf(recordings: readonly Summary[]): Summary[] {
  return recordings.filter(({ live }) => live);
}

/** Return the status of a run; null where no job writes it, or its file says that it has ended. */
export function liveStatus(
  recordings: readonly Summary[],
  paused: boolean,
  heard: Heard,
  nowMs: number,
): LiveStatus | null {
  const live = liveOf(recordings);
  if (live.length === 0) return null;
  const ends = live.flatMap(({ end_ns }) => (end_ns === null ? [] : [end_ns / 1e6]));
  const sampleMs = ends.length === 0 ? null : Math.max(...ends);
  if (paused) return { kind: "paused", sampleMs, silentMs: 0 };
  if (heard.failures >= FAILURES) return { kind: "failing", sampleMs, silentMs: 0 };
  const intervalMs = Math.max(...live.map(({ interval_ns }) => (interval_ns ?? 0) / 1e6));
  // Clocks of machines differ, so the job's own is used only until a sample has been seen to arrive. Silence lasts
  // until an answer brings news: between two answers, nothing is known.
  const since = heard.changed ?? sampleMs ?? heard.last;
  const isSilent = heard.last - since > Math.max(SILENT_MS, MISSED * intervalMs);
  return isSilent
    ? { kind: "silent", sampleMs, silentMs: nowMs - since }
    : { kind: "live", sampleMs, silentMs: 0 };
}

/** Return a duration of at least seconds as text: "35 s", "12 min", "3 h 5 min". */
export function durationText(ms: number): string {
  const seconds = Math.max(Math.floor(ms / 1000), 0);
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} days`;
}
