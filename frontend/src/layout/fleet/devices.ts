import type { FleetCapture } from "../../payload/generated/answers";
import type { FleetDevices } from "../../payload/responses/fleet";
import { byteTicks, type Tick } from "../axis";

/** Return 1 for each peak outside a range, `to` excluded; a range of null contains all. */
export function outside(peak: Float64Array, range: readonly [number, number] | null): Uint8Array {
  return Uint8Array.from(peak, (bytes) =>
    range === null || (bytes >= range[0] && bytes < range[1]) ? 0 : 1,
  );
}

/** Return the rows to list, farthest from the median first: those in the range, and only outliers unless `all`. */
export function listedRows(
  { outlier, from_median_bytes: distance }: FleetDevices,
  rows: Uint32Array,
  dimmed: Uint8Array,
  all: boolean,
): number[] {
  const listed = [...rows].filter((row) => dimmed[row] === 0 && (all || outlier[row] === 1));
  return listed.sort((a, b) => Math.abs(distance[b]) - Math.abs(distance[a]) || a - b);
}

const MAX_BARS = 64;
const MAX_TICKS = 8;
/** Bars are not narrower than this share of the largest peak: the axis has no names for single bytes. */
const MIN_STEP = 1 / 1024;

/** Devices with a peak of at least `from` and less than `to` bytes. */
export interface Bar {
  readonly from: number;
  readonly to: number;
  readonly count: number;
  readonly outliers: number;
}

/** Bars of equal width from the smallest to the largest peak. */
interface Histogram {
  readonly bars: readonly Bar[];
  readonly most: number;
  readonly ticks: readonly Tick[];
}

/** Return the histogram of the devices with these rows. Bars begin at multiples of a power of two. */
export function histogram({ peak_bytes: peak, outlier }: FleetDevices, rows: ArrayLike<number>): Histogram {
  let [low, high] = [Infinity, 0];
  for (let at = 0; at < rows.length; at++) {
    low = Math.min(low, peak[rows[at]]);
    high = Math.max(high, peak[rows[at]]);
  }
  if (rows.length === 0) return { bars: [], most: 0, ticks: [] };
  const least = Math.max((high - low + 1) / (MAX_BARS - 1), MIN_STEP * high, 1);
  const step = 2 ** Math.ceil(Math.log2(least));
  const first = Math.floor(low / step);
  const count = new Array<number>(Math.floor(high / step) - first + 1).fill(0);
  const outliers = count.slice();
  for (let at = 0; at < rows.length; at++) {
    const bar = Math.floor(peak[rows[at]] / step) - first;
    count[bar] += 1;
    outliers[bar] += outlier[rows[at]];
  }
  const bars = count.map((each, bar) => ({
    from: (first + bar) * step,
    to: (first + bar + 1) * step,
    count: each,
    outliers: outliers[bar],
  }));
  const most = Math.min(Math.ceil(bars.length / 2), MAX_TICKS);
  const ticks = byteTicks([bars[0].from, bars[bars.length - 1].to], most);
  return { bars, most: Math.max(...count), ticks: ticks.slice(0, bars.length) };
}

/** Return the range of two bars and those between them. */
export function rangeOf(bars: readonly Bar[], one: number, other: number): readonly [number, number] {
  return [bars[Math.min(one, other)].from, bars[Math.max(one, other)].to];
}

export type FindingKind = "missing" | "unreadable" | "oom" | "program" | "leak";

/** A finding about one host or several. */
export interface Finding {
  kind: FindingKind;
  hosts: string;
  count: number;
  text: string;
  /** Bytes that a leak adds in each step, or a program needs more than on most hosts; null if unknown. */
  bytes: number | null;
  /** Recording that shows it; null without one. */
  recording: string | null;
  /** Recording to compare it with; null without one. */
  usual: string | null;
  file: string;
}

const NONE = { bytes: null, recording: null, usual: null, file: "" };
const MAX_NAMES = 3;
/** The text with which fleet/summarize.py describes files of out-of-memory errors. */
const OOM = "out of memory: ";

/** Return the findings about the hosts of a capture: missing ones, files with problems, programs, and leaks. */
export function findingsOf(capture: FleetCapture): Finding[] {
  return [
    ...capture.missing_ranges.map(({ first, last, count }) => ({
      ...NONE,
      kind: "missing" as const,
      hosts: count === 1 ? first : `${first} – ${last}`,
      count,
      text: "no file of this host, which the numbers of the others imply",
    })),
    ...capture.problems.map(({ host, file, text }) => ({
      ...NONE,
      kind: text.startsWith(OOM) ? ("oom" as const) : ("unreadable" as const),
      hosts: host,
      count: 1,
      text,
      file,
    })),
    ...capture.other_programs.map((other) => ({
      ...NONE,
      kind: "program" as const,
      hosts: other.host,
      count: 1,
      text:
        other.recording === null
          ? `no ${other.module}, which most hosts have`
          : `${other.module} differs from that of most hosts: ${other.difference}`,
      bytes:
        other.reserved_bytes === null || other.usual_reserved_bytes === null
          ? null
          : other.reserved_bytes - other.usual_reserved_bytes,
      recording: other.recording,
      usual: other.usual_recording,
    })),
    ...capture.programs.flatMap(({ module, hosts, problem }) =>
      problem === null
        ? []
        : [{ ...NONE, kind: "unreadable" as const, hosts: module, count: hosts, text: problem }],
    ),
    ...capture.leaks.map(({ hosts, bytes, recording, text }) => ({
      ...NONE,
      kind: "leak" as const,
      hosts: named(hosts),
      count: hosts.length,
      text,
      bytes,
      recording,
    })),
  ];
}

function named(hosts: readonly string[]): string {
  const more = hosts.length - MAX_NAMES;
  return hosts.slice(0, MAX_NAMES).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
