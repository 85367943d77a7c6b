import { describe, expect, it } from "vitest";
import { fixtureRows } from "../../payload/recording/fixture";
import {
  barSegments,
  bufferAt,
  bufferBar,
  bytesByRole,
  bytesOver,
  hasRoles,
  liveAt,
  liveBytes,
  sharersAt,
} from "./live_set";

const rows = fixtureRows([
  { size: 100, role: 1, start: -1, end: 10 },
  { size: 40, role: 8, start: 2, end: 5 },
  { size: 40, role: 8, charge: 0, start: 3, end: 6 },
  { size: 7, role: 6, start: 5, end: 10 },
]);

describe("the live set", () => {
  it("contains a buffer from its start up to, not including, its end", () => {
    const at = (position: number): number[] => [...liveAt(rows, position)];
    expect(at(0)).toEqual([0]);
    expect(at(2)).toEqual([0, 1]);
    expect(at(4)).toEqual([0, 1]);
    expect(at(5)).toEqual([0, 3]);
    expect(at(9)).toEqual([0, 3]);
    expect(at(10)).toEqual([]);
  });

  it("separates buffers whose memory is charged to another one", () => {
    expect([...sharersAt(rows, 4)]).toEqual([2]);
    expect([...sharersAt(rows, 6)]).toEqual([]);
  });

  it("sums charges, in total and by role, largest first", () => {
    expect(liveBytes(rows, liveAt(rows, 4))).toBe(140);
    expect([...bytesByRole(rows, liveAt(rows, 5))]).toEqual([
      [1, 100],
      [6, 7],
    ]);
  });

  it("detects whether any charged row has a role", () => {
    expect(hasRoles(rows)).toBe(true);
    expect(hasRoles(fixtureRows([{ size: 8, role: 0 }, { role: 9 }]))).toBe(false);
  });

  it("sums the selected rows over the whole axis", () => {
    const at = (only: Uint8Array): number[] =>
      Array.from({ length: 10 }, (_, position) =>
        liveBytes(
          rows,
          liveAt(rows, position).filter((row) => only[row] === 1),
        ),
      );
    for (const only of [Uint8Array.of(1, 1, 1, 1), Uint8Array.of(0, 1, 1, 0)])
      expect([...bytesOver(rows, 10, only)]).toEqual(at(only));
  });
});

const barRows = fixtureRows([
  { size: 30, requested: 10, role: 8, defined: 5 },
  { size: 50, role: 1, defined: -1 },
  { size: 20, requested: 15, role: 6, defined: 2 },
]);
const LIVE = Uint32Array.of(0, 1, 2);

describe("bufferBar", () => {
  it("sorts by program order, by size and by padding", () => {
    expect([...bufferBar(barRows, LIVE, "program").rows]).toEqual([1, 2, 0]);
    expect([...bufferBar(barRows, LIVE, "size").rows]).toEqual([1, 0, 2]);
    expect([...bufferBar(barRows, LIVE, "size").edges]).toEqual([0, 50, 80, 100]);
    const padding = bufferBar(barRows, LIVE, "padding");
    expect([...padding.rows]).toEqual([0, 2]);
    expect([...padding.edges]).toEqual([0, 20, 25]);
  });
});

describe("bufferAt", () => {
  const bar = bufferBar(barRows, LIVE, "size");
  it.each([
    [0, 0],
    [49.9, 0],
    [50, 1],
    [99, 2],
    [100, -1],
    [-1, -1],
  ])("byte %d is in buffer %d", (at, place) => {
    expect(bufferAt(bar, at)).toBe(place);
  });

  it("finds nothing in an empty bar", () => {
    expect(bufferAt(bufferBar(barRows, new Uint32Array(0), "size"), 0)).toBe(-1);
  });
});

describe("barSegments", () => {
  it("draws buffers of a pixel or more as their own segments", () => {
    expect(barSegments(bufferBar(barRows, LIVE, "size"), barRows, 200)).toEqual([
      { x: 0, width: 100, color: 1, row: 1 },
      { x: 100, width: 60, color: 8, row: 0 },
      { x: 160, width: 40, color: 6, row: 2 },
    ]);
  });

  it("gathers narrower buffers under the color with the most bytes", () => {
    const drawn = barSegments(bufferBar(barRows, LIVE, "size"), barRows, 1);
    expect(drawn).toEqual([{ x: 0, width: 1, color: 1, row: -1 }]);
  });

  it("covers the bar with at most two segments for each pixel", () => {
    const many = fixtureRows(Array.from({ length: 1000 }, (_, i) => ({ size: 1 + (i % 7), role: i % 3 })));
    const bar = bufferBar(
      many,
      Uint32Array.from({ length: 1000 }, (_, i) => i),
      "program",
    );
    const drawn = barSegments(bar, many, 50);
    expect(drawn.length).toBeLessThanOrEqual(100);
    expect(drawn.reduce((sum, { width }) => sum + width, 0)).toBeCloseTo(50, 9);
  });
});
