import { formatBytes, formatCount } from "../../base/units";
import type { Summary } from "../../payload/generated/answers";

/** Return the snapshots of a run with a known time, in order of time. One of each file: its largest. */
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

/** Return the marks of visible snapshots, with those closer than `gap` pixels as one. */
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
