import type { Summary } from "../../payload/generated/answers";

/** Two recordings to compare: the newest state of something, and an earlier one. */
export interface RecordingPair {
  a: string;
  b: string;
  /** Position in A; null is its peak. */
  at_a: number | null;
}

/** A program's id changes with each compilation, so titles are compared without it. */
function seriesKey({ kind, title, memory }: Summary): string {
  return [kind, kind === "device_profile" ? "" : title.replace(/\(\d+\)$/, ""), memory].join("|");
}

const byNumber = new Intl.Collator("en", { numeric: true }).compare;

/**
 * Choose the recordings to compare first. If several recordings of the run have the same kind and memory, use
 * the first and last of the largest such series, in numeric order. Otherwise use the same recording of the
 * previous run, if it exists, or the start and the peak of the largest recording.
 */
export function defaultPair(now: readonly Summary[], before: readonly Summary[]): RecordingPair | null {
  if (now.length === 0) return null;
  const series = new Map<string, Summary[]>();
  for (const recording of now) {
    const same = series.get(seriesKey(recording)) ?? [];
    series.set(seriesKey(recording), [...same, recording]);
  }
  const longest = [...series.values()].sort((x, y) => y.length - x.length)[0];
  if (longest.length > 1) {
    const ordered = longest.slice().sort((x, y) => byNumber(`${x.host} ${x.title}`, `${y.host} ${y.title}`));
    return { a: ordered[0].id, b: ordered[ordered.length - 1].id, at_a: null };
  }
  for (const recording of now) {
    const earlier = before.find((other) => seriesKey(other) === seriesKey(recording));
    if (earlier !== undefined) return { a: earlier.id, b: recording.id, at_a: null };
  }
  const [{ id, axis }] = now;
  return { a: id, b: id, at_a: axis === "INSTANT" ? null : 0 };
}

/** Return the recordings that can be compared with another one: those of its kind, equal names first. */
export function comparableRecordings(recordings: readonly Summary[], other: Summary | undefined): Summary[] {
  const kind = recordings.filter((recording) => other === undefined || recording.kind === other.kind);
  if (other === undefined) return kind;
  const same = (recording: Summary): number => Number(seriesKey(recording) === seriesKey(other));
  return kind.sort((x, y) => same(y) - same(x));
}
