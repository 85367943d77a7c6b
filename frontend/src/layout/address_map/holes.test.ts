import { describe, expect, it } from "vitest";
import { holeAt, holesAt, unplacedBytes } from "./holes";
import { regionsOf, rowsOf } from "../timeline/fixture";

/** Unbounded: bytes beyond the rows are unknown. */
const all = { ...regionsOf([{ size: 60, temporary: true }]), bounded: false };

/**
 * At position 2, rows 0, 1 and 3 are live with holes of 5 and 20 bytes; row 2 is freed; row 4 has no address.
 */
const rows = rowsOf([
  { size: 10, offset: 5, defined: 0, last_used: 9 },
  { size: 10, offset: 20, defined: 2, last_used: 9 },
  { size: 10, offset: 30, defined: 0, last_used: 1 },
  { size: 10, offset: 50, defined: 0, last_used: 2 },
  { size: 70, offset: -1, defined: 0, last_used: 9 },
  { size: 4, offset: 22, defined: 0, last_used: 9 },
]);

describe("holesAt", () => {
  it("lists holes between live rows, largest first, with the rows on both sides", () => {
    expect(holesAt(rows, all, 2)).toEqual([
      { from: 30, to: 50, below: 1, above: 3 },
      { from: 0, to: 5, below: -1, above: 0 },
      { from: 15, to: 20, below: 0, above: 1 },
    ]);
  });

  it("stops at the highest live row", () => {
    expect(holesAt(rows, all, 3).map(({ to }) => to)).toEqual([5, 20]);
  });
});

describe("holeAt", () => {
  it("returns the listed hole for each of its bytes", () => {
    for (const position of [0, 2, 3])
      for (let byte = 0; byte < 70; byte++) {
        const listed = holesAt(rows, all, position).find(({ from, to }) => from <= byte && byte < to);
        expect(holeAt(rows, all, position, byte)).toEqual(listed ?? null);
      }
  });
});

describe("one segment", () => {
  it("has a hole up to its end, as each of several segments has", () => {
    const one = regionsOf([{ size: 60, temporary: true }]);
    expect(holesAt(rows, one, 3).map(({ from, to, above }) => [from, to, above])).toContainEqual([
      30, 60, -1,
    ]);
    expect(holeAt(rows, one, 3, 59)).toEqual({ from: 30, to: 60, below: 1, above: -1 });
  });
});

describe("segments", () => {
  const segments = regionsOf([
    { size: 20, temporary: true },
    { size: 30, temporary: true },
    { size: 8, temporary: true },
  ]);
  const inside = rowsOf([
    { size: 10, offset: 4, region: 0, defined: 0, last_used: 9 },
    { size: 5, offset: 0, region: 1, defined: 0, last_used: 9 },
    { size: 5, offset: 25, region: 1, defined: 0, last_used: 9 },
  ]);

  it("have their own holes up to their ends, and may be empty", () => {
    expect(holesAt(inside, segments, 0)).toEqual([
      { from: 25, to: 45, below: 1, above: 2 },
      { from: 50, to: 58, below: -1, above: -1 },
      { from: 14, to: 20, below: 0, above: -1 },
      { from: 0, to: 4, below: -1, above: 0 },
    ]);
    for (let byte = 0; byte < 60; byte++) {
      const listed = holesAt(inside, segments, 0).find(({ from, to }) => from <= byte && byte < to);
      expect(holeAt(inside, segments, 0, byte)).toEqual(listed ?? null);
    }
  });
});

it("have no holes before they exist", () => {
  const later = {
    ...regionsOf([8, 8].map((size) => ({ size, temporary: true }))),
    start: Int32Array.of(-1, 5),
  };
  expect(holesAt(rowsOf([]), later, 4)).toEqual([{ from: 0, to: 8, below: -1, above: -1 }]);
  expect(holesAt(rowsOf([]), later, 5).length).toBe(2);
  expect(holeAt(rowsOf([]), later, 4, 10)).toBeNull();
});

it("counts live bytes without an address", () => {
  expect(unplacedBytes(rows, 2)).toBe(70);
  expect(unplacedBytes(rows, 10)).toBe(0);
});
