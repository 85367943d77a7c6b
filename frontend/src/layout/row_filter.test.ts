import { describe, expect, it } from "vitest";
import { readFilter, writeFilter, type RowFilter } from "./row_filter";

describe("a filter in the URL", () => {
  const filters: [string, RowFilter][] = [
    [
      "model:params/layer_3",
      { kind: "node", by: "model", merge: false, invert: false, path: "params/layer_3" },
    ],
    [
      "stack.merged.inverted:a.py:12 f/g",
      { kind: "node", by: "stack", merge: true, invert: true, path: "a.py:12 f/g" },
    ],
    ["rows:3,7-9", { kind: "rows", rows: [3, 7, 8, 9] }],
  ];

  it.each(filters)("%s comes back as it was", (text, filter) => {
    expect(writeFilter(filter)).toBe(text);
    expect(readFilter(text)).toEqual(filter);
  });

  it("numbers rows in order and once", () => {
    expect(writeFilter({ kind: "rows", rows: [5, 4, 9, 4] })).toBe("rows:4-5,9");
  });

  it.each(["", "model", "model:", "name:x", "rows:", "rows:x,-1", ":x", "__proto__:x"])(
    "is none where the text is %j",
    (text) => expect(readFilter(text)).toBeNull(),
  );

  it("takes no more rows than a page can have written", () => {
    const filter = readFilter("rows:0-99999999999");
    expect(filter?.kind === "rows" && filter.rows.length).toBe(100_000);
  });
});
