import { describe, expect, it } from "vitest";
import type { FleetCapture } from "../../payload/generated/answers";
import { fleetDevices } from "../../payload/responses/fixture";
import { fileHost, rowsOf, rowWithId } from "../../payload/responses/fleet";
import { findingsOf, histogram, listedRows, outside, rangeOf } from "./devices";

const devices = fleetDevices([
  { host: "w-2", peak: 100, fromMedian: 0 },
  { host: "w-10", peak: 150, fromMedian: 50, cause: "a.py:1 put, 50 B" },
  { host: "w-10", device: "TPU core 1", peak: 20, fromMedian: -80, cause: "b" },
  { host: "w-2", peak: 7, memory: "host" },
]);
const rows = rowsOf(devices, "HBM");
const none = outside(devices.peak_bytes, null);

describe("rows of devices", () => {
  it("are those of one memory", () => {
    expect([...rows]).toEqual([0, 1, 2]);
    expect(rowWithId(devices, "run|w-10|allocator|TPU core 1")).toBe(2);
    expect(rowWithId(devices, "")).toBe(-1);
    expect(fileHost(devices, 2)).toBe("w-10");
  });

  it("are outliers, or all, farthest from the median first", () => {
    expect([...listedRows(devices, rows, none, false)]).toEqual([2, 1]);
    expect([...listedRows(devices, rows, none, true)]).toEqual([2, 1, 0]);
  });

  it("are restricted to a range of peaks without its end", () => {
    const dimmed = outside(devices.peak_bytes, [20, 150]);
    expect([...listedRows(devices, rows, dimmed, true)]).toEqual([2, 0]);
  });
});

const [MIB, GIB] = [2 ** 20, 2 ** 30];
const peaks = [28, 28.1, 28.1, 28.2, 30.9].map((gib) => Math.round(gib * GIB));
const devicesOfPeaks = fleetDevices(
  peaks.map((peak, i) => ({ host: `w-${i}`, peak, cause: i === 4 ? "x.py:1" : "" })),
);

describe("histogram", () => {
  const { bars, most, ticks } = histogram(devicesOfPeaks, [0, 1, 2, 3, 4]);

  it("counts every device once, in bars that follow each other", () => {
    expect(bars.reduce((sum, { count }) => sum + count, 0)).toBe(5);
    expect(most).toBe(Math.max(...bars.map(({ count }) => count)));
    bars.slice(1).forEach(({ from }, i) => expect(from).toBe(bars[i].to));
    expect(bars.length).toBeLessThanOrEqual(64);
    expect(bars[bars.length - 1]).toMatchObject({ count: 1, outliers: 1 });
    expect(ticks.length).toBeLessThanOrEqual(9);
  });

  it("has a range for each bar that contains its devicesOfPeaks only", () => {
    for (const [i, bar] of bars.entries()) {
      const [from, to] = rangeOf(bars, i, i);
      expect(peaks.filter((peak) => peak >= from && peak < to).length).toBe(bar.count);
    }
    expect(rangeOf(bars, 3, 1)).toEqual([bars[1].from, bars[3].to]);
  });

  it("is one bar for equal peaks, and none without devicesOfPeaks", () => {
    const one = histogram(devicesOfPeaks, [1, 2]);
    expect(one.bars).toEqual([
      { from: 28 * GIB + 96 * MIB, to: 28 * GIB + 128 * MIB, count: 2, outliers: 0 },
    ]);
    expect(one.ticks).toHaveLength(1);
    expect(histogram(devicesOfPeaks, []).bars).toEqual([]);
  });
});

const CAPTURE: FleetCapture = {
  name: "run",
  sessions: [],
  series: [],
  hosts: 20,
  missing: ["w-4", "w-5", "w-6", "w-9"],
  missing_ranges: [
    { first: "w-4", last: "w-6", count: 3 },
    { first: "w-9", last: "w-9", count: 1 },
  ],
  memories: [],
  leaks: [
    {
      site: "a.py:1",
      bytes: 8,
      unit: "step",
      hosts: ["w-1", "w-2", "w-3", "w-7"],
      devices: 4,
      recording: "id",
      text: "a leak",
    },
  ],
  programs: [
    {
      module: "jit_x",
      fingerprint: "f",
      hosts: 2,
      peak_bytes: null,
      reserved_bytes: null,
      problem: "damaged",
    },
    { module: "jit_y", fingerprint: "g", hosts: 2, peak_bytes: 1, reserved_bytes: 1, problem: null },
  ],
  other_programs: [
    {
      host: "w-8",
      module: "jit_y",
      fingerprint: "h",
      reserved_bytes: 5,
      usual_reserved_bytes: 7,
      recording: "own",
      usual_recording: "usual",
      difference: "2 B less",
      text: "",
    },
    {
      host: "w-9",
      module: "jit_y",
      fingerprint: null,
      reserved_bytes: null,
      usual_reserved_bytes: 7,
      recording: null,
      usual_recording: "usual",
      difference: "",
      text: "",
    },
  ],
  problems: [{ host: "w-0", file: "/w-0.pb", text: "the file is empty: profile again" }],
};

describe("findings about hosts", () => {
  it("are one for each range of missing hosts, file, program and leak", () => {
    expect(findingsOf(CAPTURE).map(({ kind, hosts, count, bytes }) => [kind, hosts, count, bytes])).toEqual([
      ["missing", "w-4 – w-6", 3, null],
      ["missing", "w-9", 1, null],
      ["unreadable", "w-0", 1, null],
      ["program", "w-8", 1, -2],
      ["program", "w-9", 1, null],
      ["unreadable", "jit_x", 2, null],
      ["leak", "w-1, w-2, w-3 and 1 more", 4, 8],
    ]);
  });

  it("tell out-of-memory errors from files that cannot be read", () => {
    const problems = [{ host: "w-0", file: "/w-0.oom.txt", text: "out of memory: jit_step" }];
    expect(findingsOf({ ...CAPTURE, problems }).map(({ kind }) => kind)).toContain("oom");
  });

  it("name the recordings that show them, where there are any", () => {
    const found = findingsOf(CAPTURE);
    expect(found.map(({ recording, usual }) => [recording, usual])[3]).toEqual(["own", "usual"]);
    expect(found[4].recording).toBe(null);
    expect(found[4].text).toBe("no jit_y, which most hosts have");
    expect([found[6].recording, found[6].usual]).toEqual(["id", null]);
  });
});
