import { describe, expect, it } from "vitest";
import { fixtureRows } from "../../payload/recording/fixture";
import { bufferAt, bufferBar, barSegments } from "./buffer_bar";

const rows = fixtureRows([
  { size: 30, unpadded: 10, role: 8, defined: 5 },
  { size: 50, role: 1, defined: -1 },
  { size: 20, unpadded: 15, role: 6, defined: 2 },
]);
const LIVE = Uint32Array.of(0, 1, 2);

describe("bufferBar", () => {
  it("sorts by program order, by size and by padding", () => {
    expect([...bufferBar(rows, LIVE, "program").rows]).toEqual([1, 2, 0]);
    expect([...bufferBar(rows, LIVE, "size").rows]).toEqual([1, 0, 2]);
    expect([...bufferBar(rows, LIVE, "size").edges]).toEqual([0, 50, 80, 100]);
    const padding = bufferBar(rows, LIVE, "padding");
    expect([...padding.rows]).toEqual([0, 2]);
    expect([...padding.edges]).toEqual([0, 20, 25]);
  });
});

describe("bufferAt", () => {
  const bar = bufferBar(rows, LIVE, "size");
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
    expect(bufferAt(bufferBar(rows, new Uint32Array(0), "size"), 0)).toBe(-1);
  });
});

describe("barSegments", () => {
  it("draws buffers of a pixel or more as their own segments", () => {
    expect(barSegments(bufferBar(rows, LIVE, "size"), rows, 200)).toEqual([
      { x: 0, width: 100, color: 1, row: 1 },
      { x: 100, width: 60, color: 8, row: 0 },
      { x: 160, width: 40, color: 6, row: 2 },
    ]);
  });

  it("gathers narrower buffers under the color with the most bytes", () => {
    const drawn = barSegments(bufferBar(rows, LIVE, "size"), rows, 1);
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
