import { describe, expect, it } from "vitest";
import { type FixtureRow, fixtureRows } from "../../payload/recording/fixture";
import { defaultClassification } from "./row_filter";

describe("the tree that is shown first", () => {
  const rows: [string, FixtureRow, string][] = [
    ["a source line", { source: "train.py:12" }, "source"],
    ["the line as its name", { name: "train.py:12", op_name: "step" }, "source"],
    ["a path as its name", { name: "replica_6/encoder/Cast" }, "model"],
    ["a function", { name: "Build buffer allocations", op_name: "loss_fn" }, "function"],
    ["nothing", {}, "stack"],
  ];

  it.each(rows)("of what was allocated as it ran, with %s, is by what that says", (_, row, by) => {
    expect(defaultClassification(fixtureRows([{}, row]), false)).toBe(by);
  });

  it("of a program is by its model", () => {
    expect(defaultClassification(fixtureRows([{ source: "train.py:12" }]), true)).toBe("model");
  });
});
