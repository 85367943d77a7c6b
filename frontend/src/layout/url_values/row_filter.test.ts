import { describe, expect, it } from "vitest";
import { maskOf, readFilter, toggleRole, writeFilter, type RowFilter } from "./row_filter";

describe("a row filter in the URL", () => {
  const filters: [string, RowFilter][] = [
    [
      "model:params/layer_3",
      { kind: "node", by: "model", merge: false, invert: false, path: "params/layer_3" },
    ],
    [
      "stack.merged.inverted:a.py:12 f/g",
      { kind: "node", by: "stack", merge: true, invert: true, path: "a.py:12 f/g" },
    ],
    ["roles:gradient,activation", { kind: "roles", roles: [4, 5] }],
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

  it.each(filters)("%s is read and written unchanged", (text, filter) => {
    expect(writeFilter(filter)).toBe(text);
    expect(readFilter(text)).toEqual(filter);
  });

  it.each(["", "model", "model:", "name:x", "rows:", "rows:x,-1", ":x", "__proto__:x"])(
    "is null for %j",
    (text) => expect(readFilter(text)).toBeNull(),
  );

  it("marks existing rows, whatever ranges a link contains", () => {
    const marked = (text: string): number[] => {
      const filter = readFilter(text);
      return filter?.kind === "rows" ? [...maskOf(filter.ranges, 6)] : [];
    };
    expect(marked("rows:0,2-3")).toEqual([1, 0, 1, 1, 0, 0]);
    expect(marked("rows:4-99999999999999999999")).toEqual([0, 0, 0, 0, 1, 1]);
    expect(marked("rows:9,3-1")).toEqual([0, 0, 0, 0, 0, 0]);
  });
});

describe("a click on a role in a legend", () => {
  it("leaves only that role at first, then adds and removes", () => {
    const clicks = [5, 4, 5, 4].reduce<string[]>(
      (texts, role) => [...texts, toggleRole(texts.at(-1) ?? "", role)],
      [],
    );
    expect(clicks).toEqual(["roles:activation", "roles:gradient,activation", "roles:gradient", ""]);
  });

  it("replaces a filter of another kind", () => {
    expect(toggleRole("rows:3", 5)).toBe("roles:activation");
  });
});
