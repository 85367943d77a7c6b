import { describe, expect, it } from "vitest";
import { fixtureRows } from "../../payload/recording/fixture";
import { placeByAddress, rowLifetimes, placeStacked } from "./stacking";
import { regionsOf, rowsOf } from "../timeline/fixture";

const nowhere = regionsOf([{ size: 0, temporary: true }]);

describe("placeStacked", () => {
  const rows = fixtureRows([
    { size: 100, start: -1, end: 10 },
    { size: 10, start: 0, end: 4 },
    { size: 20, start: 1, end: 3 },
    { size: 15, start: 3, end: 6 },
    { size: 10, start: 4, end: 6 },
    { size: 8, charge: 0, start: 4, end: 6 },
  ]);
  const { offset, height } = placeStacked(rowLifetimes(rows, nowhere));

  it("places the oldest row at the bottom and reuses freed bytes", () => {
    expect([...offset]).toEqual([0, 100, 110, 110, 100, -1]);
  });

  it("is as high as its maximum", () => {
    expect(height).toBe(130);
  });

  it("never overlaps rows that are live at the same time", () => {
    // A fixed mix of sizes and overlapping lifetimes.
    const many = fixtureRows(
      Array.from({ length: 300 }, (_, i) => ({
        size: 1 + ((i * 37) % 50),
        start: i,
        end: i + 1 + ((i * 53) % 40),
      })),
    );
    const { charge: size } = many;
    const { offset } = placeStacked(rowLifetimes(many, nowhere));
    for (let a = 0; a < 300; a++)
      for (let b = a + 1; b < 300; b++)
        if (many.start[b] < many.end[a])
          expect(offset[a] + size[a] <= offset[b] || offset[b] + size[b] <= offset[a]).toBe(true);
  });
});

describe("placeByAddress", () => {
  it("keeps relative addresses and cuts out unused ranges", () => {
    const rows = rowsOf([
      { size: 10, defined: 0, last_used: 1, offset: 1_000_000 },
      { size: 10, defined: 2, last_used: 3, offset: 1_000_005 },
      { size: 30, defined: 0, last_used: 3, offset: 0 },
      { size: 50, defined: -1, last_used: 3, offset: -1 },
    ]);
    const { offset, height } = placeByAddress(
      rowLifetimes(rows, regionsOf([{ size: 1_000_015, temporary: true }])),
    );
    expect([...offset]).toEqual([30, 35, 0, -1]);
    expect(height).toBe(45);
  });
});
