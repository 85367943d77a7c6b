import { describe, expect, it } from "vitest";
import { AgeStack, rowsByAge } from "./age_stack";
import { placeStacked, rowLifetimes } from "./stacking";
import { constantStretches, appendUnexplained } from "./unexplained_rows";
import { regionsOf, rowsOf, textColumn } from "../timeline/fixture";

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
