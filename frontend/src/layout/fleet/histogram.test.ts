import { describe, expect, it } from "vitest";
import { fleetDevices } from "../../payload/responses/fleet_fixture";
import { histogram, rangeOf } from "./histogram";

const [MIB, GIB] = [2 ** 20, 2 ** 30];
const peaks = [28, 28.1, 28.1, 28.2, 30.9].map((gib) => Math.round(gib * GIB));
const devices = fleetDevices(
  peaks.map((peak, i) => ({ host: `w-${i}`, peak, cause: i === 4 ? "x.py:1" : "" })),
);

describe("histogram", () => {
  const { bars, most, ticks } = histogram(devices, [0, 1, 2, 3, 4]);

  it("counts every device once, in bars that follow each other", () => {
    expect(bars.reduce((sum, { count }) => sum + count, 0)).toBe(5);
    expect(most).toBe(Math.max(...bars.map(({ count }) => count)));
    bars.slice(1).forEach(({ from }, i) => expect(from).toBe(bars[i].to));
    expect(bars.length).toBeLessThanOrEqual(64);
    expect(bars[bars.length - 1]).toMatchObject({ count: 1, outliers: 1 });
    expect(ticks.length).toBeLessThanOrEqual(9);
  });

  it("has a range for each bar that contains its devices only", () => {
    for (const [i, bar] of bars.entries()) {
      const [from, to] = rangeOf(bars, i, i);
      expect(peaks.filter((peak) => peak >= from && peak < to).length).toBe(bar.count);
    }
    expect(rangeOf(bars, 3, 1)).toEqual([bars[1].from, bars[3].to]);
  });

  it("is one bar for equal peaks, and none without devices", () => {
    const one = histogram(devices, [1, 2]);
    expect(one.bars).toEqual([
      { from: 28 * GIB + 96 * MIB, to: 28 * GIB + 128 * MIB, count: 2, outliers: 0 },
    ]);
    expect(one.ticks).toHaveLength(1);
    expect(histogram(devices, []).bars).toEqual([]);
  });
});
