import { describe, expect, it } from "vitest";
import type { Usage } from "../payload/recording";
import { positionAxis } from "./axis";
import { perPixel } from "./usage_pixels";
import {
  extremesPerStep,
  finerWindow,
  knownCurves,
  rangeOf,
  shownCurves,
  switchCurve,
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
  free: [{ key: "fragmented", most: Float64Array.of(3, NaN), least: Float64Array.of(1, NaN) }],
};

describe("usageSeries", () => {
  it("gives the last value twice, so that its step has a width, and of the curves those shown", () => {
    const { x, curves } = usageSeries(usage, 8, positionAxis(8), ["live", "fragmented"], null, null);
    expect([...x]).toEqual([0, 4, 8]);
    expect(curves.map(({ key, most, least }) => [key, [...most], [...least]])).toEqual([
      ["live", [10, 30, 30], [5, 20, 20]],
      ["fragmented", [3, NaN, NaN], [1, NaN, NaN]],
    ]);
  });

  it("works out the heap where rows say what explains it", () => {
    const explained = Float64Array.of(1, 7, 3, 4, 2, 2, 9, 2);
    const { curves } = usageSeries(usage, 8, positionAxis(8), ["heap"], null, explained);
    expect(curves).toMatchObject([{ key: "heap" }]);
    expect([[...curves[0].most], [...curves[0].least]]).toEqual([
      [7, 9, 9],
      [1, 2, 2],
    ]);
  });
});

describe("what is drawn", () => {
  it("is what there is, as at first but for what was switched", () => {
    const known = knownCurves(usage, true, true);
    expect(known).toEqual(["live", "heap", "stack", "fragmented", "ceiling"]);
    expect(knownCurves(usage, false, false)).toEqual(["live", "requested", "fragmented"]);
    expect(shownCurves(known, "")).toEqual(["live", "heap", "ceiling"]);
    expect(shownCurves(known, "fragmented,live,nonsense")).toEqual(["heap", "fragmented", "ceiling"]);
    expect(switchCurve(switchCurve("", "stack"), "heap")).toBe("heap,stack");
    expect(switchCurve("heap,stack", "heap")).toBe("stack");
  });
});

describe("perPixel", () => {
  const values = [5, 90, 2, 6, 7, 1, 1, 8, 3, 3, 3, 3];
  const series: UsageSeries = {
    x: Float64Array.of(0, 0.1, 0.2, 0.3, 5.5, 6, 6.1, 6.2, 6.3, 9, 9.1, 10),
    curves: [{ key: "live", most: Float64Array.from(values), least: Float64Array.from(values) }],
  };

  it("keeps peaks and valleys of what shares a pixel, and what goes on behind it", () => {
    const { x, curves } = perPixel(series, [0, 10], 10);
    expect([...x]).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect([...curves[0].most]).toEqual([90, 6, 6, 6, 6, 7, 8, 3, 3, 3]);
    expect([...curves[0].least]).toEqual([2, 6, 6, 6, 6, 1, 1, 3, 3, 3]);
  });

  it("is the steps themselves where these are few, from the one that reaches into the window on", () => {
    const { x, curves } = perPixel(series, [5.7, 6.15], 100);
    expect([...x]).toEqual([5.5, 6, 6.1, 6.2]);
    expect(curves[0].least).toBe(curves[0].most);
  });
});

describe("finerWindow", () => {
  it("asks for nothing while every position is there", () => {
    expect(finerWindow([10, 20], 4000, 4000)).toBeNull();
  });

  it("asks for nothing while the buckets in sight are many", () => {
    expect(finerWindow([0, 100_000], 100_000, 4096)).toBeNull();
    expect(finerWindow([0, 25_000], 100_000, 4096)).toBeNull();
  });

  it("asks for a window on a grid, wider than what is in sight", () => {
    expect(finerWindow([5000, 6000], 100_000, 4096)).toEqual([3072, 7168]);
    expect(finerWindow([5010, 6010], 100_000, 4096)).toEqual([3072, 7168]);
  });

  it("stays on the axis", () => {
    expect(finerWindow([0, 1000], 100_000, 4096)).toEqual([0, 2048]);
    expect(finerWindow([99_000, 100_000], 100_000, 4096)).toEqual([97_280, 100_000]);
  });
});

describe("rangeOf", () => {
  const series: UsageSeries = {
    x: Float64Array.of(0, 2, 4, 6),
    curves: [
      { key: "live", most: Float64Array.of(100, 300, 200, 200), least: Float64Array.of(100, 260, 200, 200) },
    ],
  };

  it("begins at zero, up to the peak or to all there is", () => {
    expect(rangeOf("peak", series, [0, 6], 300, 1000)[0]).toBe(0);
    expect(rangeOf("peak", series, [0, 6], 300, 1000)[1]).toBeCloseTo(318);
    expect(rangeOf("capacity", series, [0, 6], 300, 1000)[1]).toBeCloseTo(1060);
    expect(rangeOf("capacity", series, [0, 6], 300, null)[1]).toBeCloseTo(318);
  });

  it("reaches as far as what else is drawn", () => {
    const free = {
      key: "free" as const,
      most: Float64Array.of(700, NaN, 0, 0),
      least: new Float64Array(4),
    };
    const both = { x: series.x, curves: [...series.curves, free] };
    expect(rangeOf("peak", both, [0, 6], 300, 1000)[1]).toBeCloseTo(742);
  });

  it("fits what the curves reach in sight, their valleys and the step they are in at the left edge included", () => {
    const [low, high] = rangeOf("fit", series, [3, 5], 300, 1000);
    expect(low).toBeCloseTo(200 - 6);
    expect(high).toBeCloseTo(300 + 6);
    expect(rangeOf("fit", series, [0, 1], 300, 1000)[0]).toBeLessThan(100);
  });
});

describe("extremesPerStep", () => {
  it("loses no peak and no valley of the positions in a step", () => {
    const steps = { ...usage, position: Int32Array.of(0, 3) };
    const { most, least } = extremesPerStep(Float64Array.of(1, 9, 2, 4, 3), steps, 5);
    expect([...most]).toEqual([9, 4, 4]);
    expect([...least]).toEqual([1, 3, 3]);
  });
});
