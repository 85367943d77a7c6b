import { describe, expect, it } from "vitest";
import { compileSearch } from "../../base/search";
import { regionsOf, rowsOf } from "../fixture";
import { findMatches, intersectHighlights, nextMatch } from "./search";

const rows = rowsOf([
  { name: "fusion.2", size: 8, defined: 5, last_used: 6, offset: 0 },
  { name: "fusion.1", size: 8, defined: 1, last_used: 6, offset: 8 },
  { name: "dot.1", size: 8, defined: 1, last_used: 6, offset: 0 },
  { name: "fusion.3", size: 8, defined: 0, last_used: 9, offset: 0, region: 1 },
  { name: "fusion.4", size: 8, defined: 1, last_used: 2, offset: 0 },
]);
const regions = regionsOf([
  { size: 16, temporary: true },
  { size: 8, temporary: false },
]);

describe("findMatches", () => {
  it("sorts by position and then by byte, and counts rows that are not drawn", () => {
    const found = findMatches(rows, regions, "temp", compileSearch("fusion\\.\\d"));
    expect([...found.rows()]).toEqual([4, 1, 0]);
    expect([...(found.highlighted ?? [])]).toEqual([1, 1, 0, 1, 1]);
    expect(found.hidden).toBe(1);
    expect([...findMatches(rows, regions, "all", compileSearch("fusion")).rows()]).toEqual([3, 4, 1, 0]);
  });

  it("highlights everything without a search", () => {
    expect(findMatches(rows, regions, "all", compileSearch(""))).toMatchObject({
      highlighted: null,
      hidden: 0,
      error: null,
    });
  });

  it("treats an invalid expression as plain text and reports it", () => {
    const found = findMatches(rows, regions, "all", compileSearch("dot.1("));
    expect(found.rows().length).toBe(0);
    expect(found.error).not.toBeNull();
  });
});

describe("nextMatch", () => {
  const matches = Uint32Array.of(4, 1, 0);
  const next = (current: number | null, step: 1 | -1, position = 0): number | null =>
    nextMatch(matches, current, step, (row) => rows.defined[row], position);

  it("wraps around", () => {
    expect(next(4, 1)).toBe(1);
    expect(next(0, 1)).toBe(4);
    expect(next(4, -1)).toBe(0);
  });

  it("starts at the current position", () => {
    expect(next(null, 1, 2)).toBe(0);
    expect(next(null, -1, 2)).toBe(1);
    expect(next(2, 1, 99)).toBe(4);
    expect(nextMatch(new Uint32Array(0), null, 1, () => 0, 0)).toBeNull();
  });
});

describe("intersectHighlights", () => {
  it("highlights the intersection; null keeps the other", () => {
    const [one, other] = [Uint8Array.of(1, 1, 0, 0), Uint8Array.of(1, 0, 1, 0)];
    expect([...(intersectHighlights(one, other) ?? [])]).toEqual([1, 0, 0, 0]);
    expect(intersectHighlights(one, null)).toBe(one);
    expect(intersectHighlights(null, other)).toBe(other);
    expect(intersectHighlights(null, null)).toBeNull();
  });
});
