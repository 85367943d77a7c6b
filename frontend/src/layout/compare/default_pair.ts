import type { Summary } from "../../payload/recording/summary";

/** Two recordings that are most like to be meant: the newest state of a thing, and what it was before. */
export interface RecordingPair {
  a: string;
  b: string;
  /** The moment of A; null is its peak. */
  at_a: number | null;
}

/** A program's id is another one after each change. */
function seriesKey({ kind, title, memory }: Summary): string {
  return [kind, kind === "device_profile" ? "" : title.replace(/\(\d+\)$/, ""), memory].join("|");
}

const byNumber = new Intl.Collator("en", { numeric: true }).compare;

/**
 * Of a run, the first and the last of the largest series of one kind and memory, in number order; where everything is
 * there but once, the same thing in the run before it, if that has it; else the beginning and the
 * peak of the largest recording.
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

/** What may be compared with a recording: those of its kind, those of its name first. */
export function comparableRecordings(recordings: readonly Summary[], other: Summary | undefined): Summary[] {
  const kind = recordings.filter((recording) => other === undefined || recording.kind === other.kind);
  if (other === undefined) return kind;
  const same = (recording: Summary): number => Number(seriesKey(recording) === seriesKey(other));
  return kind.sort((x, y) => same(y) - same(x));
}
