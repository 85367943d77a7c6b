import { describe, expect, it } from "vitest";
import { fixtureRows } from "../../payload/recording/fixture";
import { timeAxis, type View } from "../axis";
import { emptyRects, type Rects } from "../timeline/rects";
import { layoutAgeStack } from "./age_columns";
import { AgeStack, rowsByAge } from "./age_stack";

interface Life {
  size: number;
  start: number;
  end: number;
  charge?: number;
}

function stackOf(lives: readonly Life[], positions: number): AgeStack {
  return new AgeStack(rowsByAge(fixtureRows([...lives]), positions));
}

/** Rectangles as [row, x0, y0, x1, y1], sorted by row and then by x. */
function listed({ length, row, x0, y0, x1, y1 }: Rects): number[][] {
  const all = Array.from({ length }, (_, i) => [row[i], x0[i], y0[i], x1[i], y1[i]]);
  return all.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
}

const drawn = (stack: AgeStack, view: View, width: number, height: number, minWidth = 0): number[][] =>
  listed(layoutAgeStack(stack, null, { view, width, height, minWidth }, emptyRects(0)));

/** The second row starts after the third, which is freed below it. */
const lives: Life[] = [
  { size: 10, start: -1, end: 8 },
  { size: 20, start: 3, end: 9 },
  { size: 30, start: 1, end: 5 },
  { size: 40, start: 0, end: 9, charge: 0 },
];
const all: View = { x: [0, 8], y: [0, 60] };

describe("AgeStack", () => {
  const stack = stackOf(lives, 8);

  it("is as high as the bytes in use", () => {
    expect([...stack.inUse.subarray(0, 8)]).toEqual([10, 40, 40, 60, 60, 30, 30, 30]);
    expect(stack.height).toBe(60);
    expect(stack.maxLive).toBe(3);
  });

  it("lists live rows, oldest first", () => {
    expect(stack.liveAt(4).map((rank) => stack.rows.row[rank])).toEqual([0, 2, 1]);
    expect(stack.liveAt(5).map((rank) => stack.rows.row[rank])).toEqual([0, 1]);
  });

  it("moves a row down when an older one is freed", () => {
    expect(stack.rowBoxes(1)).toEqual([
      { start: 3, end: 5, bottom: 40, top: 60 },
      { start: 5, end: 8, bottom: 10, top: 30 },
    ]);
    expect(stack.rowBoxes(0)).toEqual([{ start: 0, end: 8, bottom: 0, top: 10 }]);
    expect(stack.rowBoxes(3)).toEqual([]);
  });

  it("places charged rows that live on the axis, and no others", () => {
    const odd = stackOf([...lives, { size: 5, start: 6, end: 6 }, { size: 5, start: 9, end: 12 }], 8);
    expect(odd.placement(6)).toEqual({ offset: Float64Array.of(0, 0, 0, -1, -1, -1), height: 60 });
  });
});

describe("layoutAgeStack", () => {
  const stack = stackOf(lives, 8);

  it("draws each stretch of a lifetime at its height", () => {
    expect(drawn(stack, all, 80, 60)).toEqual([
      [0, 0, 50, 80, 60],
      [1, 30, 0, 50, 20],
      [1, 50, 30, 80, 50],
      [2, 10, 20, 50, 50],
    ]);
  });

  it("starts anywhere and clips to the view", () => {
    expect(drawn(stack, { x: [4, 6], y: [20, 50] }, 20, 30)).toEqual([
      [1, 0, 0, 10, 10],
      [1, 10, 20, 20, 30],
      [2, 0, 10, 10, 30],
    ]);
  });

  it("shows the event with the most bytes in use of those in a pixel", () => {
    // Pixels of four events each: 60 bytes in use at the fourth, and again at the fifth.
    expect(drawn(stack, all, 2, 6)).toEqual([
      [0, 0, 5, 2, 6],
      [1, 0, 0, 2, 2],
      [2, 0, 2, 2, 5],
    ]);
  });

  it("assigns a pixel to the row that covers its middle", () => {
    expect(drawn(stack, { x: [3, 4], y: [0, 60] }, 1, 1)).toEqual([[2, 0, 0, 1, 1]]);
  });

  it("shows highlighted rows over the others, however thin they are", () => {
    const highlighted = Uint8Array.of(1, 0, 0, 0);
    const wanted = { view: { x: [3, 4], y: [0, 60] }, width: 1, height: 1, highlighted } as const;
    const { length, row } = layoutAgeStack(stack, null, wanted, emptyRects(0));
    expect([...row.subarray(0, length)]).toEqual([2, 0]);
  });

  it("uses wide columns for rough pictures, and keeps their place while the picture moves", () => {
    // Row by row, one more is live: 2000 rows in 1000 columns.
    const many = stackOf(
      Array.from({ length: 2000 }, (_, i) => ({ size: 1, start: i, end: 2000 })),
      2000,
    );
    const columns = (from: number): number[] => {
      const view: View = { x: [from, from + 1000], y: [0, 2000] };
      const { length, x0 } = layoutAgeStack(
        many,
        null,
        { view, width: 1000, height: 2000, rough: true },
        emptyRects(0),
      );
      return [...new Set(x0.subarray(0, length))].map((x) => x + from).sort((a, b) => a - b);
    };
    const [before, after] = [columns(0), columns(7)];
    expect(before.length).toBeLessThan(100);
    expect(after.slice(1, -1).every((column) => before.includes(column))).toBe(true);
  });

  it("leaves out rectangles below the minimum width", () => {
    expect(drawn(stack, all, 80, 60, 30).map(([row]) => row)).toEqual([0, 1, 2]);
    expect(drawn(stack, all, 80, 60, 50).map(([row]) => row)).toEqual([0]);
  });

  it("keeps an instantaneous peak on a time axis", () => {
    const sudden = stackOf(
      [
        { size: 10, start: 0, end: 4 },
        { size: 50, start: 1, end: 2 },
      ],
      4,
    );
    const { clock } = timeAxis(Float64Array.of(0, 50, 50, 100));
    // The second allocation is freed at the time of its allocation, within one pixel.
    const view: View = { x: [0, 100], y: [0, 60] };
    expect(listed(layoutAgeStack(sudden, clock, { view, width: 10, height: 60 }, emptyRects(0)))).toEqual([
      [0, 0, 50, 10, 60],
      [1, 5, 0, 6, 50],
    ]);
  });

  it("draws nothing for an empty stack", () => {
    expect(drawn(stackOf([], 0), { x: [0, 1], y: [0, 1] }, 10, 10)).toEqual([]);
  });
});

/** Pseudo-random numbers in [0, 1), the same in each run: a linear congruential generator. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32) / 2 ** 32;
}

describe.each([1, 2, 3, 4, 5, 6, 7, 8])("any stack, number %i", (seed) => {
  const next = numbers(seed);
  const positions = 40 + Math.floor(next() * 400);
  const lives: Life[] = Array.from({ length: 300 }, () => {
    const start = Math.floor(next() * (positions + 2)) - 1;
    return { size: 1 + Math.floor(next() * 50), start, end: start + Math.floor(next() * next() * positions) };
  });
  const rows = fixtureRows(lives);
  const stack = new AgeStack(rowsByAge(rows, positions));
  const liveAt = (position: number): number[] =>
    lives
      .flatMap(({ start, end }, row) => (start <= position && position < end ? [row] : []))
      .sort((a, b) => lives[a].start - lives[b].start || a - b);

  it("has the live rows in order of allocation at every position, without gaps, up to the bytes in use", () => {
    const boxes = lives.map((_, row) => stack.rowBoxes(row));
    for (let position = 0; position < positions; position++) {
      let top = 0;
      for (const row of liveAt(position)) {
        const here = boxes[row].filter(({ start, end }) => start <= position && position < end);
        expect(here.map(({ bottom }) => bottom)).toEqual([top]);
        top = here[0].top;
        expect(top - here[0].bottom).toBe(lives[row].size);
      }
      expect(stack.inUse[position]).toBe(top);
    }
  });

  it("shows in each column the live rows at its fullest position", () => {
    const height = stack.height;
    for (const [from, to] of [
      [0, positions],
      [positions / 4, positions / 2],
      [7, 9],
    ]) {
      const width = 50;
      const picture = drawn(stack, { x: [from, to], y: [0, height] }, width, height);
      for (let column = 0; column < width; column++) {
        const left = from + ((to - from) * column) / width;
        const right = from + ((to - from) * (column + 1)) / width;
        const seen: number[] = [];
        for (let position = Math.floor(left); position < right && position < positions; position++)
          seen.push(liveAt(position).reduce((sum, row) => sum + lives[row].size, 0));
        const here = picture.filter(([, x0, , x1]) => x0 <= column && column < x1);
        // From the bottom: no gap or overlap, in order of allocation, as high as the most bytes in use.
        here.sort((a, b) => b[4] - a[4]);
        let foot = height;
        for (const [row, , y0, , y1] of here) {
          expect(y1).toBe(foot);
          expect(y1 - y0).toBe(lives[row].size);
          foot = y0;
        }
        expect(height - foot).toBe(Math.max(...seen));
        const starts = here.map(([row]) => lives[row].start);
        expect(starts).toEqual([...starts].sort((a, b) => a - b));
      }
    }
  });
});
