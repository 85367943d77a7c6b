import { describe, expect, it } from "vitest";
import { positionAxis } from "./axis";
import { finerWindow, mostPerStep, rangeOf, type UsageSeries, usageSeries } from "./usage_series";

describe("usageSeries", () => {
  it("gives the last value twice, so that its step has a width", () => {
    const usage = {
      length: 2,
      position: Int32Array.of(0, 4),
      live_max: Float64Array.of(10, 30),
      live_min: Float64Array.of(5, 20),
      unpadded_max: Float64Array.of(9, 28),
      unpadded_min: Float64Array.of(4, 18),
    };
    expect(usageSeries(usage, 8, positionAxis(8)).map((column) => [...column])).toEqual([
      [0, 4, 8],
      [10, 30, 30],
      [5, 20, 20],
      [9, 28, 28],
    ]);
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
  const series: UsageSeries = [
    Float64Array.of(0, 2, 4, 6),
    Float64Array.of(100, 300, 200, 200),
    Float64Array.of(100, 260, 200, 200),
    Float64Array.of(0, 0, 0, 0),
  ];

  it("begins at zero, up to the peak or to all there is", () => {
    expect(rangeOf("peak", series, [0, 6], 300, 1000)[0]).toBe(0);
    expect(rangeOf("peak", series, [0, 6], 300, 1000)[1]).toBeCloseTo(318);
    expect(rangeOf("capacity", series, [0, 6], 300, 1000)[1]).toBeCloseTo(1060);
    expect(rangeOf("capacity", series, [0, 6], 300, null)[1]).toBeCloseTo(318);
  });

  it("fits what the curve reaches in sight, its valleys and the step it is in at the left edge included", () => {
    const [low, high] = rangeOf("fit", series, [3, 5], 300, 1000);
    expect(low).toBeCloseTo(200 - 6);
    expect(high).toBeCloseTo(300 + 6);
    expect(rangeOf("fit", series, [0, 1], 300, 1000)[0]).toBeLessThan(100);
  });
});

describe("mostPerStep", () => {
  it("loses no peak of the positions in a step", () => {
    const none = new Float64Array(2);
    const usage = {
      length: 2,
      position: Int32Array.of(0, 3),
      live_max: none,
      live_min: none,
      unpadded_max: none,
      unpadded_min: none,
    };
    expect([...mostPerStep(Float64Array.of(1, 9, 2, 4, 3), usage, 5)]).toEqual([9, 4, 4]);
  });
});
