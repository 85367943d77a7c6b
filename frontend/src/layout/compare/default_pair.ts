import { byNumber, groupBy } from "../../base/sort";
import type { Summary } from "../../payload/generated/answers";

/** Two recordings to compare: the newest state of something, and an earlier one. */
export interface RecordingPair {
  a: string;
  b: string;
  /** Position in A; null is its peak. */
  at_a: number | null;
}

/** A program's id, and its number in a dump, change with each compilation, so titles are compared without them. */
function seriesKey({ kind, title, memory, backend }: Summary): string {
  const name = title.replace(/\(\d+\)$| \(module \d+.*\)$/, "");
  return [kind, kind === "device_profile" ? "" : name, memory, backend].join("|");
}

/** Return whether another run has a recording of the same program and backend, or of the same memory. */
export function hasSame(now: readonly Summary[], others: readonly Summary[]): boolean {
  const keys = new Set(others.map(seriesKey));
  return now.some((recording) => keys.has(seriesKey(recording)));
}

/** Hosts that run the same program are no series: a difference between hosts is rarely a change over time. */
const HAS_HOSTS = new Set(["program", "allocator"]);

/**
 * Choose the recordings to compare first. If several recordings of the run have the same kind and memory, use
 * the first and last of the largest such series, in numeric order. Otherwise use the same recording of another run,
 * or the start and the peak of the largest recording. Two hosts are compared only if there is no other run.
 *
 * `other` are the recordings of another run, null without one; they are the later state if `isLater`.
 */
export function defaultPair(
  now: readonly Summary[],
  other: readonly Summary[] | null,
  isLater = false,
): RecordingPair | null {
  if (now.length === 0) return null;
  const found =
    longestSeries(now, (each) => `${seriesKey(each)}|${HAS_HOSTS.has(each.kind) ? each.host : ""}`) ??
    sameInOther(now, other ?? [], isLater) ??
    (other === null ? longestSeries(now, seriesKey) : null);
  if (found !== null) return found;
  const [{ id, axis }] = now;
  return { a: id, b: id, at_a: axis === "INSTANT" ? null : 0 };
}

function longestSeries(now: readonly Summary[], key: (recording: Summary) => string): RecordingPair | null {
  const longest = groupBy(now, key).sort((x, y) => y.length - x.length)[0];
  if (longest.length < 2) return null;
  const ordered = longest.slice().sort((x, y) => byNumber(`${x.host} ${x.title}`, `${y.host} ${y.title}`));
  return { a: ordered[0].id, b: ordered[ordered.length - 1].id, at_a: null };
}

function sameInOther(
  now: readonly Summary[],
  others: readonly Summary[],
  isLater: boolean,
): RecordingPair | null {
  for (const recording of now) {
    const same = others.filter((other) => seriesKey(other) === seriesKey(recording));
    const other = same.find(({ host }) => host === recording.host) ?? same.at(0);
    if (other === undefined) continue;
    const [a, b] = isLater ? [recording.id, other.id] : [other.id, recording.id];
    return { a, b, at_a: null };
  }
  return null;
}

/** Return the recordings that can be compared with another one: those of its kind, equal names first. */
export function comparableRecordings(recordings: readonly Summary[], other: Summary | undefined): Summary[] {
  const kind = recordings.filter((recording) => other === undefined || recording.kind === other.kind);
  if (other === undefined) return kind;
  const same = (recording: Summary): number => Number(seriesKey(recording) === seriesKey(other));
  return kind.sort((x, y) => same(y) - same(x));
}
