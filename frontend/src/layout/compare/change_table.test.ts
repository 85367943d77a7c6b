import { describe, expect, it } from "vitest";
import type { ComparedEntry, Comparison, WaterfallStep } from "../../payload/generated/answers";
import { entryName, findSelectedChange, stepName, swapName } from "./change_table";

const selectedEntry = (row_a: number | null, row_b: number | null, step: number): ComparedEntry => ({
  ...({} as ComparedEntry),
  row_a,
  row_b,
  step,
});
const step = (label: string): WaterfallStep => ({ label, bytes_a: 1, bytes_b: 2 });
const comparison: Comparison = {
  ...({} as Comparison),
  entries: [selectedEntry(1, 2, 0), selectedEntry(null, 3, 1), selectedEntry(4, null, 0)],
  steps: [step("activation"), step("1,2")],
};

describe("the selected change of a comparison", () => {
  it("names an selectedEntry by its rows in A and B", () => {
    expect(comparison.entries.map(entryName)).toEqual(["1,2", ",3", "4,"]);
    expect(findSelectedChange(comparison, ",3")).toEqual({ kind: "entry", entry: comparison.entries[1] });
  });

  it("names a step by any label, and lists the entries it includes", () => {
    const [activation, odd] = comparison.steps;
    expect(findSelectedChange(comparison, stepName(activation))).toEqual({
      kind: "step",
      step: activation,
      entries: [comparison.entries[0], comparison.entries[2]],
    });
    expect(findSelectedChange(comparison, stepName(odd))).toMatchObject({ kind: "step", step: odd });
  });

  it("is null for an unknown name", () => {
    for (const name of ["", "9,9", "step:nothing", ","])
      expect(findSelectedChange(comparison, name)).toBeNull();
  });

  it("is the same when A and B are swapped", () => {
    expect(["1,2", ",3", "4,", "step:1,2", ""].map(swapName)).toEqual(["2,1", "3,", ",4", "step:1,2", ""]);
  });
});
