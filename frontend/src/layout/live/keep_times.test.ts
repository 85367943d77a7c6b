import { describe, expect, it } from "vitest";
import { keepTimes } from "./keep_times";

const times = (...seconds: number[]): Float64Array => new Float64Array(seconds.map((time) => time * 1e9));

describe("positions of a curve that grows", () => {
  const last = times(0, 1, 2, 3, 4, 5, 6, 7);

  it("stay while samples are appended", () => {
    const kept = { position: 5, zoom: [2.25, 8] as const };
    expect(keepTimes(kept, last, times(0, 1, 2, 3, 4, 5, 6, 7, 8, 9))).toEqual(kept);
  });

  it("keep their times where older samples are dropped", () => {
    const next = times(0, 2, 4, 6, 7, 8);
    expect(keepTimes({ position: 6, zoom: [3, 6.5] }, last, next)).toEqual({ position: 3, zoom: [1.5, 3.5] });
    expect(keepTimes({ position: null, zoom: null }, last, next)).toEqual({ position: null, zoom: null });
  });
});
