import { describe, expect, it } from "vitest";
import { fixtureRows } from "../../payload/recording/fixture";
import { regionsOf, rowsOf, textColumn } from "../fixture";
import { AgeStack, rowsByAge } from "./age_stack";
import { appendUnexplained, constantStretches, placeByAddress, placeStacked, rowLifetimes } from "./stacking";

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

const program = (unexplained: number[] | null): Parameters<typeof appendUnexplained>[1] => {
  const none = textColumn([]);
  const bytes = unexplained === null ? null : Float64Array.from(unexplained);
  return {
    length: 5,
    name: none,
    op: none,
    op_name: none,
    computation: none,
    time_ns: null,
    unexplained: bytes,
  };
};

describe("constantStretches", () => {
  it("returns stretches of one nonzero value", () => {
    expect(constantStretches(Float64Array.of(0, 7, 7, 3, 0, -2, 3))).toEqual([
      { start: 1, end: 3, bytes: 7 },
      { start: 3, end: 4, bytes: 3 },
      { start: 6, end: 7, bytes: 3 },
    ]);
  });
});

describe("appendUnexplained", () => {
  const rows = rowsOf([
    { name: "a", size: 2, defined: 0, last_used: 1, offset: 0 },
    { name: "b", size: 5, defined: 2, last_used: 4, offset: 8 },
  ]);

  it("appends nothing if rows explain all bytes", () => {
    expect(appendUnexplained(rows, program(null), "stack")).toBe(rows);
    expect(appendUnexplained(rows, program([0, 0, 0, 0, 0]), "stack")).toBe(rows);
  });

  it("makes the rows at each position sum to the bytes in use", () => {
    const all = appendUnexplained(rows, program([0, 7, 7, 3, 3]), "stack");
    expect(all.length).toBe(4);
    expect([...new AgeStack(rowsByAge(all, 5)).inUse].slice(0, 5)).toEqual([2, 9, 12, 8, 8]);
    const packed = placeStacked(rowLifetimes(all, regionsOf([{ size: 16, temporary: true }])));
    expect([...packed.offset].every((bytes) => bytes >= 0)).toBe(true);
  });

  it("names the appended rows and gives them no address", () => {
    const all = appendUnexplained(rows, program([0, 7, 7, 3, 3]), "stack");
    expect([0, 1, 2, 3].map((row) => all.name.at(row))).toEqual(["a", "b", "stack", "stack"]);
    expect([...all.offset]).toEqual([0, 8, -1, -1]);
    expect([...all.canonical]).toEqual([0, 1, 2, 3]);
    expect(all.source.at(3)).toBe("");
  });
});
