import { describe, expect, it } from "vitest";
import { fixtureRows } from "../../payload/recording/fixture";
import type { Rows } from "../../payload/recording/rows";
import { findAtOffset, segmentPieces, layoutSegments } from "./address_map";
import { regionsOf } from "../timeline/fixture";

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

  it("computes the first address from the first chunk, unless regions are joined addresses", () => {
    const places = { region: () => NaN, address: (row: number) => 1000 + rows.offset[row] };
    const addresses = (of: typeof regions): number[] =>
      layoutSegments(rows, all(rows), of, 0, places).map(({ address }) => address);
    expect(addresses(regions)).toEqual([1000, 1000, NaN]);
    expect(addresses({ ...regions, bounded: false })).toEqual([NaN, NaN, NaN]);
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
