import { describe, expect, it } from "vitest";
import { fixtureRows } from "../payload/recording/fixture";
import type { Rows } from "../payload/recording/rows";
import {
  findAtOffset,
  holeAt,
  holesAt,
  layoutSegments,
  rowInRegions,
  rowsByEvent,
  segmentPieces,
  unplacedBytes,
} from "./address_map";
import { regionsOf, rowsOf } from "./fixture";

const rows = fixtureRows([
  { size: 10, region: 0, offset: 30, role: 1 },
  { size: 20, region: 0, offset: 0, role: 2 },
  { size: 50, region: 1, offset: 0, role: 3 },
  { size: 5, region: -1, offset: -1 },
]);
const regions = regionsOf([100, 50, 8].map((size) => ({ size, temporary: true })));
const all = (of: Rows): Uint32Array => Uint32Array.from({ length: of.length }, (_, row) => row);
const [first, full, empty] = layoutSegments(rows, all(rows), regions, 0);

describe("layoutSegments", () => {
  it("sorts chunks by address and finds the largest hole of each segment", () => {
    expect([...first.chunks]).toEqual([1, 0]);
    expect(first).toMatchObject({ size: 100, used: 30, hole: { from: 40, to: 100 } });
  });

  it("handles full and empty segments", () => {
    expect(full).toMatchObject({ size: 50, used: 50, hole: { from: 0, to: 0 } });
    expect(empty).toMatchObject({ size: 8, used: 0, hole: { from: 0, to: 8 } });
  });

  it("returns the segments that exist at the position, with the rows live then", () => {
    const later = { ...regions, start: Int32Array.of(-1, 5, -1), end: Int32Array.of(9, 9, 5) };
    expect(layoutSegments(rows, Uint32Array.of(0), later, 4).map(({ size, used }) => [size, used])).toEqual([
      [100, 10],
      [8, 0],
    ]);
    expect(
      layoutSegments(rows, Uint32Array.of(0, 2), later, 5).map(({ size, used }) => [size, used]),
    ).toEqual([
      [100, 10],
      [50, 50],
    ]);
  });

  it("adds up the chunks whose free waits for other streams", () => {
    const waiting = fixtureRows([
      { size: 10, region: 0, offset: 0, start: 0, last_used: 2, end: 6 },
      { size: 20, region: 0, offset: 10, start: 0, end: 6 },
    ]);
    const at = (position: number): number =>
      layoutSegments(waiting, all(waiting), regions, position)[0].awaiting;
    expect([at(1), at(2), at(5)]).toEqual([0, 10, 10]);
  });

  it("leaves out rows without a known offset", () => {
    const lost = fixtureRows([{ size: 40, region: 0, offset: -1 }]);
    expect(layoutSegments(lost, Uint32Array.of(0), regions, 0)[0]).toMatchObject({
      used: 0,
      hole: { from: 0, to: 100 },
    });
  });

  it("leaves out rows outside every region", () => {
    expect([first, full, empty].flatMap(({ chunks }) => [...chunks])).not.toContain(3);
  });
});

describe("events", () => {
  it("have the row that they allocate or free, or whose free they request", () => {
    const freed = fixtureRows([
      { start: -1, last_used: 2, end: 4 },
      { start: 1, last_used: 3, end: 3 },
      { start: 4, end: 9 },
    ]);
    expect([...rowsByEvent(freed, 6)]).toEqual([-1, 1, 0, 1, 2, -1]);
  });
});

describe("regions", () => {
  it("have a row, if any is in them", () => {
    expect([...rowInRegions(rows, regions)]).toEqual([0, 2, -1]);
  });
});

describe("findAtOffset", () => {
  it.each([
    [0, 1, null],
    [19, 1, null],
    [20, -1, { from: 20, to: 30 }],
    [29, -1, { from: 20, to: 30 }],
    [30, 0, null],
    [40, -1, { from: 40, to: 100 }],
  ])("byte %d", (offset, row, hole) => {
    expect(findAtOffset(first, rows, offset)).toEqual({ row, hole });
  });

  it("returns an empty segment as one hole", () => {
    expect(findAtOffset(empty, rows, 3)).toEqual({ row: -1, hole: { from: 0, to: 8 } });
  });
});

describe("segmentPieces", () => {
  it("returns wide chunks as their own pieces", () => {
    expect(segmentPieces(first, rows, 2)).toEqual([
      { x: 0, width: 40, color: 2, row: 1 },
      { x: 60, width: 20, color: 1, row: 0 },
    ]);
  });

  it("returns one piece for each pixel that narrow chunks touch", () => {
    const many = fixtureRows(
      Array.from({ length: 1000 }, (_, i) => ({
        size: 1,
        region: 0,
        offset: i < 500 ? i : i + 9000,
        role: 1,
      })),
    );
    const [segment] = layoutSegments(many, all(many), regionsOf([{ size: 10000, temporary: true }]), 0);
    const drawn = segmentPieces(segment, many, 0.01);
    expect(drawn.map(({ x }) => x)).toEqual([0, 1, 2, 3, 4, 95, 96, 97, 98, 99]);
    expect(drawn.every(({ width, row }) => width === 1 && row === -1)).toBe(true);
  });
});

/** Unbounded: bytes beyond the holeRows are unknown. */
const allHoles = { ...regionsOf([{ size: 60, temporary: true }]), bounded: false };

/**
 * At position 2, holeRows 0, 1 and 3 are live with holes of 5 and 20 bytes; row 2 is freed; row 4 has no address.
 */
const holeRows = rowsOf([
  { size: 10, offset: 5, defined: 0, last_used: 9 },
  { size: 10, offset: 20, defined: 2, last_used: 9 },
  { size: 10, offset: 30, defined: 0, last_used: 1 },
  { size: 10, offset: 50, defined: 0, last_used: 2 },
  { size: 70, offset: -1, defined: 0, last_used: 9 },
  { size: 4, offset: 22, defined: 0, last_used: 9 },
]);

describe("holesAt", () => {
  it("lists holes between live holeRows, largest first, with the holeRows on both sides", () => {
    expect(holesAt(holeRows, allHoles, 2)).toEqual([
      { from: 30, to: 50, below: 1, above: 3 },
      { from: 0, to: 5, below: -1, above: 0 },
      { from: 15, to: 20, below: 0, above: 1 },
    ]);
  });

  it("stops at the highest live row", () => {
    expect(holesAt(holeRows, allHoles, 3).map(({ to }) => to)).toEqual([5, 20]);
  });
});

describe("holeAt", () => {
  it("returns the listed hole for each of its bytes", () => {
    for (const position of [0, 2, 3])
      for (let byte = 0; byte < 70; byte++) {
        const listed = holesAt(holeRows, allHoles, position).find(
          ({ from, to }) => from <= byte && byte < to,
        );
        expect(holeAt(holeRows, allHoles, position, byte)).toEqual(listed ?? null);
      }
  });
});

describe("one segment", () => {
  it("has a hole up to its end, as each of several segments has", () => {
    const one = regionsOf([{ size: 60, temporary: true }]);
    expect(holesAt(holeRows, one, 3).map(({ from, to, above }) => [from, to, above])).toContainEqual([
      30, 60, -1,
    ]);
    expect(holeAt(holeRows, one, 3, 59)).toEqual({ from: 30, to: 60, below: 1, above: -1 });
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
  expect(unplacedBytes(holeRows, 2)).toBe(70);
  expect(unplacedBytes(holeRows, 10)).toBe(0);
});
