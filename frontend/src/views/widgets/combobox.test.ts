import { describe, expect, it } from "vitest";
import type { Summary } from "../../payload/generated/answers";
import { makeRun } from "../../payload/responses/fixture";
import { dateText, runOptions, withPeak } from "./combobox";

const NOW = new Date(2026, 10, 22, 19, 30);
const listing = (...peaks: number[]) =>
  peaks.map((peak_bytes) => ({ run: "train", peak_bytes })) as unknown as Summary[];

describe("dateText", () => {
  it("has the time of day this year, and else the year", () => {
    expect(dateText(new Date(2026, 0, 5, 0, 7), NOW)).toBe("Jan 5, 00:07");
    expect(dateText(new Date(2025, 11, 31), NOW)).toBe("Dec 31, 2025");
  });
});

describe("runOptions", () => {
  it("has what is known", () => {
    const modified_ns = new Date(2026, 10, 2, 8, 5).getTime() * 1e6;
    const runs = [makeRun({ modified_ns, peak_bytes: 1024, host_count: 2 }), makeRun({ name: "x" })];
    const details = runOptions(runs, new Map(), NOW).map(({ detail }) => detail);
    expect(details).toEqual(["2 hosts · 1.00 KiB · Nov 2, 08:05", ""]);
  });

  it("prefers the peak of the latest listing", () => {
    const peaks = withPeak(new Map(), listing(2048, 7));
    expect(runOptions([makeRun({ peak_bytes: 1024 })], peaks, NOW)[0].detail).toBe("2.00 KiB");
  });
});

describe("withPeak", () => {
  it("returns the same peaks if no run is new", () => {
    const peaks = withPeak(new Map(), listing(5));
    expect(withPeak(peaks, listing(5))).toBe(peaks);
    expect(withPeak(peaks, listing())).toBe(peaks);
  });
});
