import { describe, expect, it } from "vitest";
import { finerWindow, stepAt, usageSeries } from "./usage_series";

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
    expect(usageSeries(usage, 8).map((column) => [...column])).toEqual([
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

describe("stepAt", () => {
  it("finds the step a position lies in", () => {
    expect([0, 3, 4, 8, 20].map((at) => stepAt([0, 4, 8], at))).toEqual([0, 0, 1, 1, 1]);
  });
});
