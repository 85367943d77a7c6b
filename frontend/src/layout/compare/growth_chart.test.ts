import { describe, expect, it } from "vitest";
import type { Growth } from "../../payload/generated/answers";
import { growthChart } from "./growth_chart";

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
