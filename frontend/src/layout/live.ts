import { formatBytes, formatCount } from "../base/units";
import type { Summary } from "../payload/generated/answers";
import { HOST_MEMORY } from "../payload/generated/constants";
import { type Span, timeAxis } from "./axis";

/** The state of the page's connection to a running job. */
export type LiveKind = "live" | "paused" | "silent" | "failing";

export interface LiveStatus {
  kind: LiveKind;
  /** Time of the last sample, in ms since 1970; null before the first. */
  sampleMs: number | null;
  /** Time without a new sample, in ms; 0 unless silent. */
  silentMs: number;
}

/** Times of the server's answers: views/data/use_followed.ts. */
interface Heard {
  last: number;
  changed: number | null;
  failures: number;
}

/** A job is silent without a sample for this many times its interval, and for at least this long. */
const MISSED = 5;
const SILENT_MS = 10_000;
/** A single failed request is not reported. */
const FAILURES = 2;

/** Return the recordings that a running job still writes. */
export function liveOf(recordings: readonly Summary[]): Summary[] {
  return recordings.filter(({ live }) => live);
}

/** Return the memory of the host beside that of a watched device; none for the host itself. */
export function hostOf(recordings: readonly Summary[], { kind, host, run, id }: Summary): Summary[] {
  return recordings.filter(
    (one) =>
      one.memory === HOST_MEMORY &&
      one.kind === kind &&
      one.host === host &&
      one.run === run &&
      one.id !== id,
  );
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
  // Clocks of machines differ, so the job's clock is used only until the page has seen a sample arrive. Between two
  // answers the page knows nothing new, so silence lasts until an answer has a new sample.
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

/** Return the largest snapshot of each file of a run, if its time is known, in order of time. */
export function snapshotsOf(recordings: readonly Summary[], memory?: string): Summary[] {
  const found = new Map<string, Summary>();
  for (const recording of recordings) {
    if (recording.axis !== "INSTANT" || recording.time_ns === null) continue;
    if (memory !== undefined && recording.memory !== memory) continue;
    if (!found.has(recording.host)) found.set(recording.host, recording);
  }
  return [...found.values()].sort((a, b) => (a.time_ns ?? 0) - (b.time_ns ?? 0));
}

/** Return the time, step, reason and size of a snapshot as text. */
export function snapshotText({ time_ns, step, reason, peak_bytes }: Summary): string {
  return [
    time_ns === null ? "" : new Date(time_ns / 1e6).toLocaleTimeString("en-GB"),
    step === null ? "" : `step ${formatCount(step)}`,
    reason ?? "",
    formatBytes(peak_bytes),
  ]
    .filter((part) => part !== "")
    .join(", ");
}

/** Snapshots whose marks would touch. */
export interface Mark {
  /** In pixels from the left of the chart. */
  x: number;
  snapshots: Summary[];
}

/** Return the marks of visible snapshots; snapshots closer than `gap` pixels share one. */
export function groupMarks(
  snapshots: readonly Summary[],
  pixelOf: (ns: number) => number,
  width: number,
  gap: number,
): Mark[] {
  const marks: Mark[] = [];
  for (const snapshot of snapshots) {
    const x = pixelOf(snapshot.time_ns ?? 0);
    if (!(x >= 0 && x <= width)) continue;
    const last = marks[marks.length - 1];
    if (marks.length > 0 && x - last.x < gap) last.snapshots.push(snapshot);
    else marks.push({ x, snapshots: [snapshot] });
  }
  return marks;
}

/** Positions of the page's state that stand for times of a curve. */
interface Kept {
  position: number | null;
  zoom: Span | null;
}

/**
 * Move positions to the same times in a newer curve: from times `last` to times `next`. Appended samples move
 * none, but a running job now and then thins older samples: if every second is gone, position 8 becomes 4.
 */
export function keepTimes({ position, zoom }: Kept, last: Float64Array, next: Float64Array): Kept {
  if (next.length === 0 || startsWith(next, last)) return { position, zoom };
  const [from, to] = [timeAxis(last), timeAxis(next)];
  const moved = (at: number): number => to.positionAt(from.at(at));
  return {
    position: position === null ? null : Math.floor(moved(position)),
    zoom: zoom === null ? null : [moved(zoom[0]), moved(zoom[1])],
  };
}

function startsWith(times: Float64Array, start: Float64Array): boolean {
  if (times.length < start.length) return false;
  // Thinning drops samples throughout the older part, so its times differ.
  return start.every((time, i) => time === times[i]);
}
