import { formatBytes, formatCount } from "../../base/units";
import type { Runs, Summary } from "../../payload/generated/answers";
import type { Option } from "./combobox";

/** Largest peaks of runs by name, as far as they are known. */
export type RunPeaks = ReadonlyMap<string, number>;

/** Return the known peaks with that of a run's recordings, which are sorted by peak. */
export function withPeak(peaks: RunPeaks, recordings: readonly Summary[]): RunPeaks {
  if (recordings.length === 0 || peaks.get(recordings[0].run) === recordings[0].peak_bytes) return peaks;
  return new Map(peaks).set(recordings[0].run, recordings[0].peak_bytes);
}

/** Return the options of a run picker: each run's date, hosts and largest peak, as far as they are known. */
export function runOptions(runs: Runs["runs"], peaks: RunPeaks = new Map(), now = new Date()): Option[] {
  return runs.map(({ name, host_count: hosts, modified_ns, peak_bytes }) => {
    const peak = peaks.get(name) ?? peak_bytes;
    const details = [
      hosts > 1 ? `${formatCount(hosts)} hosts` : "",
      peak === null ? "" : formatBytes(peak),
      modified_ns === null ? "" : dateText(new Date(modified_ns / 1e6), now),
    ];
    return { value: name, label: name, detail: details.filter(Boolean).join(" · ") };
  });
}

const DAY = { month: "short", day: "numeric" } as const;
// Made once: a formatter takes longer to make than a thousand dates to format.
const THIS_YEAR = new Intl.DateTimeFormat("en", {
  ...DAY,
  hour: "2-digit",
  minute: "2-digit",
  hourCycle: "h23",
});
const OTHER_YEARS = new Intl.DateTimeFormat("en", { ...DAY, year: "numeric" });

/** Return a time in the browser's time zone: of a day this year with the time of day, of others with the year. */
export function dateText(date: Date, now: Date): string {
  return (date.getFullYear() === now.getFullYear() ? THIS_YEAR : OTHER_YEARS).format(date);
}
