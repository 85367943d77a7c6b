import { describe, expect, it } from "vitest";
import { RESERVED } from "../../base/colors";
import { positionAxis, type View } from "../axis";
import { type BufferLike, regionsOf, rowsOf } from "../fixture";
import { indexBlocks, regionBands, rowBox, timelineBlocks, timelineExtent } from "./blocks";
import { boxInPixels, emptyRects, labelCandidates, layoutTimeline, type Rects } from "./rects";

const regions = regionsOf([
  { size: 100, temporary: true },
  { size: 50, temporary: true },
  { size: 40, temporary: false, kind: "parameter" },
]);

const buffers: BufferLike[] = [
  { size: 30, defined: 2, last_used: 3, offset: 10 },
  { size: 50, defined: 0, last_used: 9, offset: 0, region: 1 },
  { size: 40, defined: -1, last_used: 10, offset: 0, region: 2, role: 1 },
  { size: 0, defined: 0, last_used: 1, offset: 0 },
  { size: 8, defined: 4, last_used: 4, offset: 0, region: -1 },
];

function laidOut(items: BufferLike[], view: View, width: number, height: number, length = 10): number[][] {
  const blocks = timelineBlocks(rowsOf(items), regions, length, "all");
  const rects = layoutTimeline(indexBlocks(blocks), view, width, height, emptyRects(blocks.length));
  return edges(rects).sort((a, b) => a[0] - b[0]);
}

/** Rectangles as [row, x0, y0, x1, y1]. */
function edges({ length, row, x0, y0, x1, y1 }: Rects): number[][] {
  return Array.from({ length }, (_, i) => [row[i], x0[i], y0[i], x1[i], y1[i]]);
}

describe("timelineBlocks", () => {
  it("places a block by its own lifetime, last position included, and by region base plus offset", () => {
    const { length, start, end, bottom, top, color, row } = timelineBlocks(
      rowsOf(buffers),
      regions,
      10,
      "all",
    );
    expect(length).toBe(3);
    expect([...start.slice(0, 3)]).toEqual([2, 0, 0]);
    expect([...end.slice(0, 3)]).toEqual([4, 10, 10]);
    expect([...bottom.slice(0, 3)]).toEqual([10, 100, 150]);
    expect([...top.slice(0, 3)]).toEqual([40, 150, 190]);
    expect([...color.slice(0, 3)]).toEqual([8, 8, 1]);
    expect([...row.slice(0, 3)]).toEqual([0, 1, 2]);
  });

  it("has paler blocks while memory is reserved for a row that is not written or no longer used", () => {
    const rows = rowsOf([
      { size: 30, defined: 4, last_used: 6, offset: 0, role: 6 },
      { size: 30, defined: 7, last_used: 9, offset: 0, role: 8 },
    ]);
    const held = {
      ...rows,
      start: Int32Array.of(-1, 7),
      end: Int32Array.of(10, 10),
      charge: Float64Array.of(30, 0),
    };
    const { blocks } = indexBlocks(timelineBlocks(held, regions, 10, "all", null, true));
    const found = Array.from({ length: blocks.length }, (_, i) => [
      blocks.color[i],
      blocks.start[i],
      blocks.end[i],
    ]);
    // Reserved memory comes first, so that what is written in it is drawn over it.
    expect(found).toEqual([
      [RESERVED + 6, 0, 4],
      [RESERVED + 6, 7, 10],
      [6, 4, 7],
      [8, 7, 10],
    ]);
  });

  it("leaves out parameters, outputs and constants unless they are requested", () => {
    expect(timelineBlocks(rowsOf(buffers), regions, 10, "temp").length).toBe(2);
    expect(timelineExtent(regions, positionAxis(10), "temp")).toEqual({ x: [0, 10], y: [0, 150] });
    expect(timelineExtent(regions, positionAxis(10), "all")).toEqual({ x: [0, 10], y: [0, 190] });
    expect([...regionBands(regions, "temp")]).toEqual([0, 100, 100, 150]);
  });

  it("keeps a position for rows entirely before or after the axis", () => {
    const rows = rowsOf([
      { size: 1, defined: -1, last_used: -1, offset: 0 },
      { size: 1, defined: 10, last_used: 10, offset: 0 },
    ]);
    expect(rowBox(rows, regions, 0, 10)).toEqual({ start: 0, end: 1, bottom: 0, top: 1 });
    expect(rowBox(rows, regions, 1, 10)).toEqual({ start: 9, end: 10, bottom: 0, top: 1 });
  });
});

describe("layoutTimeline", () => {
  it("places byte 0 at the bottom of the picture and position 0 at its left", () => {
    expect(laidOut(buffers, { x: [0, 10], y: [0, 200] }, 100, 400)).toEqual([
      [0, 20, 320, 40, 380],
      [1, 0, 100, 100, 200],
      [2, 0, 20, 100, 100],
    ]);
  });

  it("clips blocks to the window and leaves out those outside", () => {
    expect(laidOut(buffers, { x: [3, 5], y: [20, 120] }, 100, 100)).toEqual([
      [0, 0, 80, 50, 100],
      [1, 0, 0, 100, 20],
    ]);
    expect(laidOut(buffers, { x: [4, 5], y: [0, 100] }, 100, 100)).toEqual([]);
  });

  it("keeps fractions of sizes below one pixel", () => {
    const tiny = [{ size: 1, defined: 1, last_used: 1, offset: 0 }];
    expect(laidOut(tiny, { x: [0, 8], y: [0, 4] }, 4, 2)).toEqual([[0, 0.5, 1.5, 1, 2]]);
  });

  it("finds in every window the same blocks as a walk over all blocks", () => {
    const lives = Array.from({ length: 400 }, (_, i) => {
      const defined = (i * 37) % 1000;
      return { size: 1, offset: i % 100, defined, last_used: Math.min(999, defined + ((i * i) % 300)) };
    });
    for (const x of [
      [0, 1000],
      [0, 1],
      [500, 501],
      [333.5, 334.25],
      [990, 1000],
      [100, 400],
    ] as const) {
      const found = laidOut(lives, { x, y: [0, 100] }, 100, 100, 1000).map(([row]) => row);
      const expected = lives.flatMap((life, row) =>
        life.defined < x[1] && life.last_used + 1 > x[0] ? [row] : [],
      );
      expect(found).toEqual(expected);
    }
  });

  it("draws long lifetimes before short ones", () => {
    const blocks = timelineBlocks(
      rowsOf([
        { size: 1, defined: 5, last_used: 5, offset: 0 },
        { size: 1, defined: 0, last_used: 9, offset: 0 },
        { size: 1, defined: 1, last_used: 3, offset: 0 },
      ]),
      regions,
      10,
      "all",
    );
    expect([...indexBlocks(blocks).blocks.row]).toEqual([1, 2, 0]);
  });
});

describe("boxInPixels", () => {
  it("does not clip", () => {
    const box = { start: 0, end: 10, bottom: 0, top: 100 };
    expect(boxInPixels(box, { x: [5, 10], y: [50, 75] }, 100, 100)).toEqual([-100, -100, 100, 300]);
  });
});

describe("labelCandidates", () => {
  it("returns the largest rectangles with room", () => {
    const blocks = timelineBlocks(rowsOf(buffers), regions, 10, "all");
    const view: View = { x: [0, 10], y: [0, 200] };
    const rects = layoutTimeline(indexBlocks(blocks), view, 100, 400, emptyRects(3));
    const rowsWithRoom = (width: number, limit: number): number[] =>
      labelCandidates(rects, width, 30, limit).map((i) => rects.row[i]);
    expect(rowsWithRoom(50, 9).sort()).toEqual([1, 2]);
    expect(rowsWithRoom(20, 9).length).toBe(3);
    expect(rowsWithRoom(20, 1)).toEqual([1]);
  });
});
