import { describe, expect, it } from "vitest";
import {
  byteTicks,
  durationAxis,
  formatTime,
  positionAxis,
  positionTicks,
  stepAt,
  timeAxis,
  timeTicks,
} from "./axis";
import { regionsOf, rowsOf } from "./fixture";
import { indexBlocks, timelineBlocks } from "./timeline/blocks";
import { emptyRects, layoutTimeline } from "./timeline/rects";

const GiB = 1024 ** 3;
const labels = (ticks: { label: string }[]): string[] => ticks.map(({ label }) => label);

describe("byteTicks", () => {
  it("steps by powers of two in one unit", () => {
    expect(byteTicks([0, 3 * GiB], 6)).toEqual([
      { value: 0, label: "0" },
      { value: 0.5 * GiB, label: "0.5 GiB" },
      { value: GiB, label: "1.0 GiB" },
      { value: 1.5 * GiB, label: "1.5 GiB" },
      { value: 2 * GiB, label: "2.0 GiB" },
      { value: 2.5 * GiB, label: "2.5 GiB" },
      { value: 3 * GiB, label: "3.0 GiB" },
    ]);
    expect(labels(byteTicks([0, 100], 4))).toEqual(["0", "32 B", "64 B", "96 B"]);
  });

  it("distinguishes neighbors far from zero", () => {
    const near = labels(byteTicks([70 * GiB, 70 * GiB + 64 * 1024], 4));
    expect(near.length).toBeGreaterThan(2);
    expect(new Set(near).size).toBe(near.length);
  });
});

describe("positionTicks", () => {
  it("steps by 1, 2 or 5 times a power of ten", () => {
    expect(labels(positionTicks([0, 1234], 5))).toEqual(["0", "500", "1,000"]);
    expect(labels(positionTicks([3.2, 6.9], 50))).toEqual(["4", "5", "6"]);
    expect(labels(positionTicks([0, 90], 5))).toEqual(["0", "20", "40", "60", "80"]);
  });
});

describe("timeTicks", () => {
  const labels = (from: number, to: number): string[] => timeTicks([from, to], 3).map(({ label }) => label);

  it("labels seconds with enough decimals to distinguish ticks", () => {
    expect(labels(0, 3e9)).toEqual(["0 s", "1 s", "2 s", "3 s"]);
    expect(labels(2.5e9, 2.53e9)).toEqual(["2.50 s", "2.51 s", "2.52 s", "2.53 s"]);
  });

  it("has the unit of the span if that is less than a second", () => {
    expect(labels(0, 37e6)).toEqual(["0 ms", "20 ms"]);
    expect(labels(0, 2.4e6)).toEqual(["0 ms", "1 ms", "2 ms"]);
    expect(labels(100e6, 100.2e6)).toEqual(["100.0 ms", "100.1 ms", "100.2 ms"]);
  });

  it("counts from the last whole second if ticks are closer than a microsecond", () => {
    expect(labels(2_000_000_100, 2_000_000_103)).toEqual([
      "2 s + 100 ns",
      "2 s + 101 ns",
      "2 s + 102 ns",
      "2 s + 103 ns",
    ]);
  });

  it("has hours, minutes and whole seconds from ten minutes on", () => {
    expect(labels(0, 1800e9)).toEqual(["0 s", "10 min", "20 min", "30 min"]);
    expect(labels(7190e9, 7220e9)).toEqual(["1 h 59 min 50 s", "2 h", "2 h 10 s", "2 h 20 s"]);
    expect(labels(0, 10 * 86_400e9)).toEqual(["0 s", "96 h", "192 h"]);
    expect(labels(7200e9, 7201e9)[1]).toBe("7200.5 s");
  });
});

describe("formatTime", () => {
  it("uses the largest unit that fits", () => {
    expect([0, 12, 1500, 2_500_000, 98_635_696_592].map(formatTime)).toEqual([
      "0 ns",
      "12 ns",
      "1.500 \u00b5s",
      "2.500 ms",
      "98.636 s",
    ]);
  });

  it("is in whole seconds from ten minutes on", () => {
    expect(formatTime(599.9e9)).toBe("599.900 s");
    expect(formatTime(3725.4e9)).toBe("1 h 2 min 5 s");
  });
});

/** Two simultaneous events, a pause of ten seconds, then two events 5 ns apart. */
const TIMES = Float64Array.of(100, 100, 10_000_000_100, 10_000_000_105);

describe("durationAxis", () => {
  it("gives each position its time, and none to the others", () => {
    const axis = durationAxis(Float64Array.of(2, 0, 3), "estimated time");
    expect([0, 1, 2, 2.5, 3].map(axis.at)).toEqual([0, 2e9, 2e9, 3.5e9, 5e9]);
    expect(axis.positionAt(3.5e9)).toBe(2.5);
    expect([axis.extent, axis.measure]).toEqual([[0, 5e9], "estimated time"]);
  });

  it("has positions where nothing takes time", () => {
    expect(durationAxis(Float64Array.of(0, 0), "estimated time").clock).toBeNull();
  });
});

describe("timeAxis", () => {
  const axis = timeAxis(TIMES);

  it("extends from the first event to slightly past the last", () => {
    expect(axis.extent[0]).toBe(100);
    expect(axis.extent[1]).toBeCloseTo(10_000_000_105 + 200_000_000, -1);
  });

  it("converts positions to times, and fractions to shares of the following pause", () => {
    expect([0, 1, 2, 3].map(axis.at)).toEqual([...TIMES]);
    expect(axis.at(1.5)).toBe(5_000_000_100);
    expect(axis.at(-1)).toBe(100);
    expect(axis.at(9)).toBe(axis.extent[1]);
  });

  it("converts times to the last event at or before them", () => {
    expect(axis.positionAt(5_000_000_100)).toBe(1.5);
    expect(Math.floor(axis.positionAt(10_000_000_104))).toBe(2);
    expect(axis.positionAt(0)).toBe(0);
    expect(axis.positionAt(1e12)).toBe(4);
  });

  it("restores a window of nanoseconds next to a pause of seconds", () => {
    const window = [10_000_000_098, 10_000_000_107] as const;
    const back = axis.fromSaved(axis.toSaved(window));
    expect(back[0]).toBeCloseTo(window[0], 3);
    expect(back[1]).toBeCloseTo(window[1], 0);
  });

  it("saves the full extent as null", () => {
    expect(axis.toSaved(axis.extent)).toBeNull();
    expect(axis.fromSaved(null)).toEqual(axis.extent);
  });
});

describe("positionAxis", () => {
  it("uses positions as values", () => {
    const axis = positionAxis(10);
    expect([axis.at(3.5), axis.positionAt(3.5)]).toEqual([3.5, 3.5]);
    expect(axis.fromSaved(axis.toSaved([2, 5]))).toEqual([2, 5]);
  });
});

describe("stepAt", () => {
  it("finds the step that contains a value", () => {
    expect([0, 3, 4, 8, 20].map((at) => stepAt([0, 4, 8], at))).toEqual([0, 0, 1, 1, 1]);
  });
});

describe("blocks on a time axis", () => {
  const rows = rowsOf([
    { size: 10, defined: 0, last_used: 1, offset: 0 },
    { size: 10, defined: 2, last_used: 2, offset: 10 },
    { size: 10, defined: 3, last_used: 3, offset: 20 },
  ]);
  const clock = Float64Array.of(0, 10, 80, 90, 100);
  const index = indexBlocks(
    timelineBlocks(rows, regionsOf([{ size: 30, temporary: true }]), 4, "all", clock),
  );
  const edges = (from: number, to: number): number[][] => {
    const rects = layoutTimeline(index, { x: [from, to], y: [0, 30] }, 100, 30, emptyRects(3));
    return Array.from({ length: rects.length }, (_, i) => [rects.row[i], rects.x0[i], rects.x1[i]]).sort(
      (a, b) => a[0] - b[0],
    );
  };

  it("start and end at the times of their events", () => {
    expect(edges(0, 100)).toEqual([
      [0, 0, 80],
      [1, 80, 90],
      [2, 90, 100],
    ]);
  });

  it("are clipped to the window, and found within one event", () => {
    expect(edges(40, 60)).toEqual([[0, 0, 100]]);
    expect(edges(85, 95)).toEqual([
      [1, 0, 50],
      [2, 50, 100],
    ]);
  });
});
