import { describe, expect, it } from "vitest";
import { maskOf, readFilter, writeFilter, type RowFilter } from "./row_filter";

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
    [
      "rows:3,7-9",
      {
        kind: "rows",
        ranges: [
          [3, 3],
          [7, 9],
        ],
      },
    ],
  ];

  it.each(filters)("%s comes back as it was", (text, filter) => {
    expect(writeFilter(filter)).toBe(text);
    expect(readFilter(text)).toEqual(filter);
  });

  it.each(["", "model", "model:", "name:x", "rows:", "rows:x,-1", ":x", "__proto__:x"])(
    "is none where the text is %j",
    (text) => expect(readFilter(text)).toBeNull(),
  );

  it("marks the rows that there are, whatever ranges a link names", () => {
    const marked = (text: string): number[] => {
      const filter = readFilter(text);
      return filter?.kind === "rows" ? [...maskOf(filter.ranges, 6)] : [];
    };
    expect(marked("rows:0,2-3")).toEqual([1, 0, 1, 1, 0, 0]);
    expect(marked("rows:4-99999999999999999999")).toEqual([0, 0, 0, 0, 1, 1]);
    expect(marked("rows:9,3-1")).toEqual([0, 0, 0, 0, 0, 0]);
  });
});
