import { describe, expect, it } from "vitest";
import type { PlannedAllocation, RuntimeToProgram } from "./generated/answers";
import { encodeTables } from "./recording/fixture";
import { readRecordingData, type Usage } from "./recording/recording";
import { bufferDetails, readDetailTables, runtimeToProgramAt, usageWindow } from "./report";
import { decodeTables } from "./tables/tables";

const each = (values: number[]): Float64Array => Float64Array.from(values);
const LIVE = [1, 5, 2, 8, 3, 4, 7];
const FREE = [NaN, 9, NaN, NaN, 6, 2, 3];
const whole: Usage = {
  length: 7,
  position: Int32Array.from(LIVE.keys()),
  live_max: each(LIVE),
  live_min: each(LIVE),
  unpadded_max: each(LIVE),
  unpadded_min: each(LIVE),
  reported: [{ key: "free", max: each(FREE), min: each(FREE) }],
};

describe("a window of the usage curve", () => {
  it("has the extremes of each bucket; the last bucket may be shorter", () => {
    const { position, live_max, live_min, length } = usageWindow(whole, { from: 0, to: 7, buckets: 3 });
    expect(length).toBe(3);
    expect([...position]).toEqual([0, 3, 6]);
    expect([...live_max]).toEqual([5, 8, 7]);
    expect([...live_min]).toEqual([1, 3, 7]);
  });

  it("starts at the requested position and is at most as fine as the positions", () => {
    const { position, live_max } = usageWindow(whole, { from: 2, to: 5, buckets: 100 });
    expect([...position]).toEqual([2, 3, 4]);
    expect([...live_max]).toEqual([2, 8, 3]);
  });

  it("skips unknown values unless all values are unknown", () => {
    const [{ max, min }] = usageWindow(whole, { from: 0, to: 7, buckets: 4 }).reported;
    expect([...max]).toEqual([9, NaN, 6, 3]);
    expect([...min]).toEqual([9, NaN, 2, 3]);
  });
});

/**
 * Rows 0 to 3 are in region 0 and row 4 is in region 1. Row 2 is an alias of row 0; row 3 follows both in
 * memory.
 */
function program() {
  const i32 = (values: number[]) => ({ kind: "i32" as const, values });
  const f64 = (values: number[]) => ({ kind: "f64" as const, values });
  const text = (values: string[]) => ({ kind: "text" as const, values });
  const same = text(["", "", "", "", ""]);
  const rows = {
    id: f64([0, 1, 2, 3, 4]),
    name: text(["a", "b", "c", "d", "e"]),
    op: same,
    op_name: same,
    source: same,
    shape: same,
    dtype: same,
    role: { kind: "u8" as const, values: [0, 0, 0, 0, 0] },
    size: f64([8, 4, 8, 8, 8]),
    requested: f64([8, 4, 8, 8, 8]),
    charge: f64([8, 0, 0, 8, 8]),
    start: i32([0, 2, 0, 0, 0]),
    end: i32([2, 3, 3, 3, 3]),
    defined: i32([0, 2, 1, 0, 0]),
    last_used: i32([1, 2, 2, 2, 3]),
    region: i32([0, 0, 0, 0, 1]),
    offset: f64([0, 4, 0, 8, 0]),
    canonical: i32([0, 1, 0, 3, 4]),
  };
  const regions = {
    kind: text(["temporary", "output"]),
    index: f64([5, 6]),
    address: f64([NaN, NaN]),
    size: f64([16, 8]),
    base: f64([0, 16]),
    temporary: { kind: "u8" as const, values: [1, 0] },
    start: i32([-1, -1]),
    end: i32([3, 3]),
  };
  const names = text(["add", "mul", "dot"]);
  return readRecordingData(
    decodeTables(
      encodeTables(
        {},
        { rows, regions, program: { name: names, op: names, op_name: names, computation: names } },
      ),
    ),
  );
}

const PLAN = { title: "jit_f(1)" } as PlannedAllocation;
const told = readDetailTables(
  decodeTables(
    encodeTables(
      { planned: [PLAN] },
      {
        rows: {
          stack: { kind: "i32", values: [1, -1, 2, 0, 0] },
          freed_stack: { kind: "i32", values: [-1, -1, -1, 0, 0] },
          planned: { kind: "i32", values: [-1, -1, -1, 0, -1] },
        },
        frames: {
          parent: { kind: "i32", values: [-1, 0, 2] },
          function: { kind: "text", values: ["main", "step", "circle"] },
          file: { kind: "text", values: ["m.py", "s.py", ""] },
          line: { kind: "i32", values: [3, 7, 0] },
        },
        regions: { index: { kind: "f64", values: [5, 6] } },
      },
    ),
  ),
);

describe("buffer details", () => {
  it("contain the address and the instructions at both ends of the lifetime", () => {
    const { region, offset_bytes, defined, last_used } = bufferDetails(program(), told, 1);
    expect(region).toEqual({ index: 5, kind: "temporary", size_bytes: 16 });
    expect(offset_bytes).toBe(4);
    expect(defined).toEqual({ position: 2, instruction: "dot" });
    expect(last_used).toEqual({ position: 2, instruction: "dot" });
    expect(bufferDetails(program(), told, 4).last_used).toEqual({ position: 3, instruction: "" });
  });

  it("list buffers that share bytes, in order of use: aliases and buffers that reuse the memory", () => {
    const { shares, shares_total } = bufferDetails(program(), told, 0);
    expect(shares_total).toBe(2);
    expect(shares.map(({ row, relation }) => [row, relation])).toEqual([
      [2, "same buffer"],
      [1, "same bytes at another time"],
    ]);
    expect(bufferDetails(program(), told, 4).shares).toEqual([]);
  });

  it("contain call stacks, innermost frame first, and the planned allocation, if known", () => {
    const first = bufferDetails(program(), told, 0);
    expect(first.stack).toEqual([
      { function: "step", file: "s.py", line: 7 },
      { function: "main", file: "m.py", line: 3 },
    ]);
    expect(first.freed_stack).toEqual([]);
    expect(first.planned).toBeNull();
    expect(bufferDetails(program(), told, 1).stack).toEqual([]);
    expect(bufferDetails(program(), told, 3).freed_stack.map((frame) => frame.function)).toEqual(["main"]);
    expect(bufferDetails(program(), told, 3).planned).toEqual(PLAN);
  });

  it("stop at a cycle of frames", () => {
    expect(bufferDetails(program(), told, 2).stack.map((frame) => frame.function)).toEqual(["circle"]);
  });
});

describe("the running programs", () => {
  it("are those since the last change before a position", () => {
    const answers = ["none", "f"].map((title) => ({ at: 0, programs: [{ title }] }) as RuntimeToProgram);
    const at = (position: number) =>
      runtimeToProgramAt({ start: [-1, 4, 6], answer: [0, 1, 0], answers }, position);
    expect([-1, 3, 4, 5, 6, 99].map((position) => at(position).programs[0].title)).toEqual([
      "none",
      "none",
      "f",
      "f",
      "none",
      "none",
    ]);
    expect(at(5).at).toBe(5);
  });
});
