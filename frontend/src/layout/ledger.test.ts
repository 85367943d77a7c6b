import { describe, expect, it } from "vitest";
import { ledgerChart, nearestMoment } from "./ledger";

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
