import { describe, expect, it } from "vitest";
import type { Growth } from "../payload/generated/answers";
import { growthChart, ledgerChart, nearestMoment } from "./bands";

const ledger = {
  time_ns: [1e9, 3e9, 4e9],
  holders: [
    { holder: "Live", bytes: [10, 30, 20] },
    { holder: "Cache", bytes: [5, 0, 10] },
    { holder: "Free", bytes: [85, 70, 70] },
  ],
  phases: [],
};

describe("the chart of a ledger", () => {
  it("stacks the holders up to the size of the memory", () => {
    const { bands, max, span } = ledgerChart(ledger, 4);
    expect(bands.map(({ top }) => top)).toEqual([
      [10, 30, 20],
      [15, 30, 30],
      [100, 100, 100],
    ]);
    expect(bands.map(({ most }) => most)).toEqual([30, 10, 85]);
    expect([max, ...span]).toEqual([100, 1e9, 4e9]);
  });

  it("has an axis for one moment, and for none", () => {
    const one = ledgerChart({ time_ns: [7], holders: [{ holder: "Live", bytes: [3] }], phases: [] }, 4);
    expect(one.span).toEqual([7, 8]);
    expect(ledgerChart({ time_ns: [], holders: [], phases: [] }, 4).bands).toEqual([]);
  });

  it("finds the moment below the pointer", () => {
    expect([0, 1.9e9, 2.1e9, 9e9].map((time) => nearestMoment(ledger.time_ns, time))).toEqual([0, 0, 1, 2]);
  });
});

function series(curves: Record<string, number[]>, rest: number[] = []): Growth {
  const names = Object.keys(curves);
  const count = curves[names[0]].length;
  const others = rest.length > 0 ? rest : Array.from({ length: count }, () => 0);
  return {
    message: null,
    headline: null,
    points: Array.from({ length: count }, (_, i) => ({
      id: `${i}`,
      title: `m${i}`,
      host: `m${i}`,
      step: null,
      time_ns: null,
      bytes: others[i] + names.reduce((total, name) => total + curves[name][i], 0),
    })),
    sites: names.map((site) => ({
      site,
      verdict: site === "leak" ? "leak" : "steady",
      sentence: "",
      bytes_per_profile: 0,
      confidence: 1,
      allocations: 1,
      curve: curves[site],
    })),
    rest: others,
  };
}

describe("growthChart", () => {
  it("stacks growing sites on constant ones, up to the total of each profile", () => {
    const { bands, max } = growthChart(series({ leak: [1, 2, 3], kept: [10, 10, 10] }));
    expect(bands).toEqual([
      { site: 1, bottom: [0, 0, 0], top: [10, 10, 10] },
      { site: 0, bottom: [10, 10, 10], top: [11, 12, 13] },
    ]);
    expect(max).toBe(13);
  });

  it("gathers small sites at the bottom, but never a leak", () => {
    const curves = Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`s${i}`, [100 + i, 100 + i]]));
    const { bands } = growthChart(series({ ...curves, leak: [1, 2] }, [5, 5]));
    expect(bands[0].site).toBe(-1);
    expect(bands[0].top).toEqual([5 + 100 + 101 + 102 + 103 + 104, 5 + 100 + 101 + 102 + 103 + 104]);
    expect(bands.map(({ site }) => site)).toContain(12);
    expect(bands[bands.length - 1].top[1]).toBe(5 + 12 * 100 + 66 + 2);
  });
});
