import { byNumber, groupBy } from "../../base/sort";
import type { ComparedEntry, Comparison, Summary, WaterfallStep } from "../../payload/generated/answers";
import { type Change, ROLES } from "../../payload/generated/constants";

export const CHANGE_LABELS: Record<Change, string> = {
  only_a: "only in A",
  only_b: "only in B",
  grown: "grown",
  shrunk: "shrunk",
  same: "unchanged",
};

export function delta({ bytes_a, bytes_b }: ComparedEntry): number {
  return bytes_b - bytes_a;
}

/** Return the searched texts of an entry. */
export function entryTexts(entry: ComparedEntry): string[] {
  const { site, name, op, op_name, source, shape, role } = entry;
  return [site, name, op, op_name, source, shape, ROLES[role]];
}

/** The selected change of a comparison: an entry of A, B or both, or a step between the totals. */
export type SelectedChange =
  | { kind: "entry"; entry: ComparedEntry }
  /** `entries` are those that the step counts, the largest changes first. */
  | { kind: "step"; step: WaterfallStep; entries: ComparedEntry[] };

/** Return an entry's name: the rows of its largest allocations in A and in B, "12,34"; "12," if it is in A only. */
export function entryName({ row_a, row_b }: ComparedEntry): string {
  return `${row_a ?? ""},${row_b ?? ""}`;
}

/** Return a step's name. Labels can be any text, so a prefix distinguishes steps from entries. */
export function stepName({ label }: Pick<WaterfallStep, "label">): string {
  return `step:${label}`;
}

/**
 * Return null if the comparison has no such change: the name belongs to other recordings or positions, or to
 * an entry that is not listed.
 */
export function findSelectedChange({ entries, steps }: Comparison, name: string): SelectedChange | null {
  if (name === "") return null;
  const entry = entries.find((candidate) => entryName(candidate) === name);
  if (entry !== undefined) return { kind: "entry", entry };
  const number = steps.findIndex((candidate) => stepName(candidate) === name);
  if (number < 0) return null;
  return { kind: "step", step: steps[number], entries: entries.filter(({ step }) => step === number) };
}

/** Return the name of the same change after A and B are swapped. */
export function swapName(name: string): string {
  return name.replace(/^(\d*),(\d*)$/, "$2,$1");
}

/** A bar of the waterfall: from the level of the bars before it to its own level. */
export interface WaterfallBar {
  label: string;
  kind: "total" | "grown" | "shrunk";
  bytes_a: number;
  bytes_b: number;
  /** Share of the axis, 0 to 1. */
  from: number;
  to: number;
}

export interface Waterfall {
  bars: WaterfallBar[];
  /** Bytes at the start of the axis; above 0 if the changes are small compared to the totals. */
  origin: number;
  end: number;
  /** Number of steps without a change, which have no bar. */
  unchanged: number;
}

/** The axis starts at 0 unless the bars would then fill less than a third of it. */
const MIN_SHARE_USED = 1 / 3;

/** Lay out bars from the total of A to the total of B. Each bar starts where the previous one ends. */
export function waterfall(totalA: number, totalB: number, steps: readonly WaterfallStep[]): Waterfall {
  const changed = steps.filter((step) => step.bytes_a !== step.bytes_b);
  let level = totalA;
  const spans = changed.map((step) => {
    const from = level;
    level += step.bytes_b - step.bytes_a;
    return { step, from, to: level };
  });
  const levels = [totalA, totalB, ...spans.map(({ to }) => to)];
  const [least, most] = [Math.min(...levels), Math.max(...levels, 1)];
  const small = most > least && most - least < MIN_SHARE_USED * most;
  const origin = small ? Math.max(0, least - (most - least)) : 0;
  const end = most;
  const at = (bytes: number): number => (bytes - origin) / Math.max(end - origin, 1);
  const total = (label: string, bytes: number): WaterfallBar => ({
    label,
    kind: "total",
    bytes_a: bytes,
    bytes_b: bytes,
    from: 0,
    to: at(bytes),
  });
  return {
    bars: [
      total("A", totalA),
      ...spans.map(({ step, from, to }): WaterfallBar => ({
        ...step,
        kind: to > from ? "grown" : "shrunk",
        from: at(from),
        to: at(to),
      })),
      total("B", totalB),
    ],
    origin,
    end,
    unchanged: steps.length - changed.length,
  };
}

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
