import { describe, expect, it } from "vitest";
import type { Usage } from "../../payload/recording/recording";
import { positionAxis } from "../axis";
import {
  availableCurves,
  byteRange,
  finerWindow,
  isNear,
  reduceToPixels,
  shownCurves,
  toggleCurve,
  type UsageSeries,
  usageSeries,
} from "./usage_series";

const usage: Usage = {
  length: 2,
  position: Int32Array.of(0, 4),
  live_max: Float64Array.of(10, 30),
  live_min: Float64Array.of(5, 20),
  unpadded_max: Float64Array.of(9, 28),
  unpadded_min: Float64Array.of(4, 18),
  reported: [
    { key: "heap", max: Float64Array.of(7, 9), min: Float64Array.of(1, 2) },
    { key: "stack", max: Float64Array.of(0, 3), min: Float64Array.of(0, 0) },
    { key: "free", max: Float64Array.of(3, NaN), min: Float64Array.of(1, NaN) },
    { key: "fragmentation", max: Float64Array.of(NaN, NaN), min: Float64Array.of(NaN, NaN) },
  ],
};

describe("usageSeries", () => {
  it("repeats the last value, so that its step has a width, and returns the visible curves", () => {
    const { x, curves } = usageSeries(usage, 8, positionAxis(8), ["live", "free"]);
    expect([...x]).toEqual([0, 4, 8]);
    expect(curves.map(({ key, max, min }) => [key, [...max], [...min]])).toEqual([
      ["live", [10, 30, 30], [5, 20, 20]],
      ["free", [3, NaN, NaN], [1, NaN, NaN]],
    ]);
  });
});

describe("available curves", () => {
  it("are those with data, visible by default unless switched", () => {
    const known = availableCurves(usage, true);
    expect(known).toEqual(["live", "heap", "stack", "free", "ceiling"]);
    expect(shownCurves(known, "")).toEqual(["live", "heap", "ceiling"]);
    expect(shownCurves(known, "free,live,nonsense")).toEqual(["heap", "free", "ceiling"]);
    expect(toggleCurve(toggleCurve("", "stack"), "heap")).toBe("heap,stack");
    expect(toggleCurve("heap,stack", "heap")).toBe("stack");
  });

  it("include the requested bytes instead of the heap if there is no stack", () => {
    const none = { ...usage, reported: usage.reported.filter(({ key }) => key !== "stack") };
    expect(availableCurves(none, false)).toEqual(["live", "requested", "free"]);
  });
});

describe("reduceToPixels", () => {
  const values = [5, 90, 2, 6, 7, 1, 1, 8, 3, 3, 3, 3];
  const series: UsageSeries = {
    x: Float64Array.of(0, 0.1, 0.2, 0.3, 5.5, 6, 6.1, 6.2, 6.3, 9, 9.1, 10),
    curves: [{ key: "live", max: Float64Array.from(values), min: Float64Array.from(values) }],
  };

  it("keeps peaks and valleys within a pixel, and values that continue", () => {
    const { x, curves } = reduceToPixels(series, [0, 10], 10);
    expect([...x]).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect([...curves[0].max]).toEqual([90, 6, 6, 6, 6, 7, 8, 3, 3, 3]);
    expect([...curves[0].min]).toEqual([2, 6, 6, 6, 6, 1, 1, 3, 3, 3]);
  });

  it("returns the steps themselves if they are few, from the one that overlaps the window", () => {
    const { x, curves } = reduceToPixels(series, [5.7, 6.15], 100);
    expect([...x]).toEqual([5.5, 6, 6.1, 6.2]);
    expect(curves[0].min).toBe(curves[0].max);
  });
});

describe("finerWindow", () => {
  it("is null while every position is loaded", () => {
    expect(finerWindow([10, 20], 4000, 4000)).toBeNull();
  });

  it("is null while many buckets are visible", () => {
    expect(finerWindow([0, 100_000], 100_000, 4096)).toBeNull();
    expect(finerWindow([0, 25_000], 100_000, 4096)).toBeNull();
  });

  it("is aligned to a grid and wider than the visible range", () => {
    expect(finerWindow([5000, 6000], 100_000, 4096)).toEqual([3072, 7168]);
    expect(finerWindow([5010, 6010], 100_000, 4096)).toEqual([3072, 7168]);
  });

  it("stays on the axis", () => {
    expect(finerWindow([0, 1000], 100_000, 4096)).toEqual([0, 2048]);
    expect(finerWindow([99_000, 100_000], 100_000, 4096)).toEqual([97_280, 100_000]);
  });
});

describe("byteRange", () => {
  const series: UsageSeries = {
    x: Float64Array.of(0, 2, 4, 6),
    curves: [
      { key: "live", max: Float64Array.of(100, 300, 200, 200), min: Float64Array.of(100, 260, 200, 200) },
    ],
  };

  it("starts at zero, up to the peak or to the capacity", () => {
    expect(byteRange("peak", series, [0, 6], 300, 1000)[0]).toBe(0);
    expect(byteRange("peak", series, [0, 6], 300, 1000)[1]).toBeCloseTo(318);
    expect(byteRange("capacity", series, [0, 6], 300, 1000)[1]).toBeCloseTo(1060);
    expect(byteRange("capacity", series, [0, 6], 300, null)[1]).toBeCloseTo(318);
  });

  it("extends to all visible curves", () => {
    const free = {
      key: "free" as const,
      max: Float64Array.of(700, NaN, 0, 0),
      min: new Float64Array(4),
    };
    // Fragmentation is a share, not bytes.
    const share = { key: "fragmentation" as const, max: Float64Array.of(9e9), min: Float64Array.of(-9e9) };
    const both = { x: series.x, curves: [...series.curves, free, share] };
    expect(byteRange("peak", both, [0, 6], 300, 1000)[1]).toBeCloseTo(742);
  });

  it("fits the visible range of the curves, including valleys and the step at the left edge", () => {
    const [low, high] = byteRange("fit", series, [3, 5], 300, 1000);
    expect(low).toBeCloseTo(200 - 6);
    expect(high).toBeCloseTo(300 + 6);
    expect(byteRange("fit", series, [0, 1], 300, 1000)[0]).toBeLessThan(100);
  });
});

it("shows a program's limit only where it does not flatten the curves", () => {
  expect(isNear(1000, 500)).toBe(true);
  expect(isNear(1000, 1500)).toBe(true);
  expect(isNear(1000, 499)).toBe(false);
  expect(isNear(null, 499)).toBe(false);
});
