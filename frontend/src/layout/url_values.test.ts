import { describe, expect, it } from "vitest";
import {
  hashLabel,
  maskOf,
  readExpanded,
  readFilter,
  readSorting,
  type RowFilter,
  toggleExpanded,
  toggleRole,
  truncateForUrl,
  writeFilter,
  writeSorting,
} from "./url_values";

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

describe("expanded marks", () => {
  it("are a set, newest last; toggling twice restores it", () => {
    expect([...readExpanded("")]).toEqual([]);
    const opened = toggleExpanded(toggleExpanded("", "a"), "b");
    expect(opened).toBe("a.b");
    expect([...readExpanded(opened)]).toEqual(["a", "b"]);
    expect(toggleExpanded(opened, "a")).toBe("b");
    expect(toggleExpanded(toggleExpanded(opened, "a"), "b")).toBe("");
  });

  it("keep a URL short: the oldest are dropped, and no mark is cut in two", () => {
    const marks = Array.from({ length: 400 }, (_, i) => `mark${i}`);
    const kept = truncateForUrl(marks.join("."));
    expect(kept.length).toBeLessThanOrEqual(600);
    expect(kept.length).toBeGreaterThan(580);
    const left = kept.split(".");
    expect(left).toEqual(marks.slice(-left.length));
    expect(truncateForUrl("a.b")).toBe("a.b");
  });

  it("accept any text from a URL", () => {
    expect([...readExpanded("..a...__proto__.")]).toEqual(["a", "__proto__"]);
  });

  it("are hashes that need no escaping", () => {
    // The published value of FNV-1a for "a", 0xe40c292c.
    expect(parseInt(hashLabel("a"), 36)).toBe(0xe40c292c);
    expect(hashLabel("")).toBe((0x811c9dc5).toString(36));
    expect(hashLabel("<img src=x>.&#")).toMatch(/^[0-9a-z]{1,7}$/);
  });
});

const KEYS = ["name", "size"] as const;
const FIRST = { key: "size", descending: true } as const;

it("reads what it writes", () => {
  for (const key of KEYS)
    for (const descending of [false, true])
      expect(readSorting(writeSorting({ key, descending }), KEYS, FIRST)).toEqual({ key, descending });
});

it("uses the default for a column that the table lacks", () => {
  for (const text of ["", "-", "peak", "-peak", "--name", "Name"])
    expect(readSorting(text, KEYS, FIRST)).toBe(FIRST);
});
