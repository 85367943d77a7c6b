import { describe, expect, it } from "vitest";
import { rowsCsv } from "../../layout/table/fields";
import { type FixtureRow, fixtureRows, regionTable } from "../../payload/recording/fixture";
import { type Addresses, addressesFromRegions, type Rows } from "../../payload/recording/rows";
import { ALLOCATOR_TERMS, PROGRAM_TERMS } from "../data/terms";
import { splitConstant } from "../tables/data_table";
import { savedLines, sortedBy } from "../tables/fixture";
import { allocationColumns, type BufferColumns, bufferColumns } from "./columns";

const NOWHERE: Addresses = { region: () => NaN, address: () => NaN };

function programColumns(rows: Rows, places = NOWHERE): BufferColumns {
  return bufferColumns({ rows, places, terms: PROGRAM_TERMS }, 10);
}

function split(of: FixtureRow[]): { keys: string[]; constant: string[] } {
  const source = { rows: fixtureRows(of), places: NOWHERE, terms: PROGRAM_TERMS };
  const { shown, constant } = splitConstant(bufferColumns(source, null).columns);
  return {
    keys: shown.map(({ key }) => key),
    constant: constant.map(({ heading, constant: text }) => `${heading}: ${text}`),
  };
}

describe("columns", () => {
  it("are those with any text, if there is one row", () => {
    const row = { name: "a", size: 10, requested: 4, role: 1, shape: "f32[1]", op: "copy" };
    expect(split([row]).keys).toEqual(["size", "requested", "expansion", "name", "role", "shape", "op"]);
  });

  it("that are the same in all rows are text, and empty ones are left out", () => {
    const same = { size: 10, requested: 10, role: 1, shape: "f32[1]" };
    const { keys, constant } = split([
      { ...same, name: "a", op: "copy" },
      { ...same, name: "b", op: "dot" },
    ]);
    expect(keys).toEqual(["size", "name", "op"]);
    expect(constant).toEqual(["Role: parameter", "Shape: f32[1]"]);
  });
});

const KIB = 1024;

describe("sorting", () => {
  const rows = fixtureRows([
    { name: "fusion.10", role: 8, size: 64 * KIB, requested: 32 * KIB, op_name: "layer_1/mlp", defined: 4 },
    { name: "param.1", role: 1, size: 128 * KIB, source: "model.py:12", defined: -1 },
    { name: "fusion.9", role: 8, size: 4 * KIB, shape: "f32[1024]{0}", defined: 2 },
    { name: "copy.2", role: 8, size: 2 * KIB, requested: 0, defined: 2 },
  ]);
  const { columns } = programColumns(rows);
  const sorted = (key: string, descending = false): readonly number[] =>
    sortedBy(columns, [0, 1, 2, 3], key, descending);

  it("sorts numbers, and keeps equal rows in row order in both directions", () => {
    expect(sorted("size", true)).toEqual([1, 0, 2, 3]);
    expect(sorted("defined")).toEqual([1, 2, 3, 0]);
    expect(sorted("defined", true)).toEqual([0, 2, 3, 1]);
    expect(sorted("expansion", true)).toEqual([0, 1, 2, 3]);
  });

  it("sorts text numerically: fusion.9 before fusion.10", () => {
    expect(sorted("name")).toEqual([3, 2, 0, 1]);
    expect(sorted("name", true)).toEqual([1, 0, 2, 3]);
  });

  it("sorts categories by name", () => {
    expect(sorted("role")).toEqual([1, 0, 2, 3]);
  });
});

describe("a saved file of buffers", () => {
  it("contains bytes, quotes cells that need it and disarms formulas", () => {
    const hostile = fixtureRows([
      { name: '=cmd|"x"', size: 2048, requested: 1024, shape: "f32[2,3]", source: "a.py:1" },
    ]);
    const { saved } = programColumns(hostile, { region: () => 5, address: () => NaN });
    expect(savedLines(saved, [0])).toEqual([
      "name,role,size_bytes,requested_bytes,expansion,shape,op,op_name,source,defined_at,last_used_at," +
        "region,offset_bytes,address",
      `"'=cmd|""x""",temporary,2048,1024,2.000,"f32[2,3]",,,a.py:1,0,9,5,0,`,
    ]);
  });
});

describe("a saved file of allocations", () => {
  const rows = fixtureRows([
    { name: "live before", size: 100, start: -1, end: 3, offset: -1 },
    { name: "kept", size: 50, requested: 48, start: 1, end: 4, role: 1, offset: 512 },
    { name: "=freed", size: 8, start: 0, end: 2, source: "a,b" },
  ]);
  const times = Float64Array.of(0, 1_500_000_000, 2_000_000_001, 2_500_000_000);
  const places = addressesFromRegions(rows, regionTable([{ index: 4096, address: 4096 }]));
  const source = { rows, places, terms: ALLOCATOR_TERMS };
  const { saved } = allocationColumns(source, times);
  const [head, ...lines] = rowsCsv([0, 1, 2], saved, { name: "rest", charge_bytes: 7 })
    .trimEnd()
    .split("\r\n")
    .map((line) => line.match(/("[^"]*"|[^,]*)(,|$)/g)?.map((cell) => cell.replace(/,$/, "")) ?? []);
  const cells = (line: number): Record<string, string> =>
    Object.fromEntries(head.map((heading, i) => [heading, lines[line][i]]));

  it("contains the times of allocation and free within the recording", () => {
    expect(cells(0)).toMatchObject({ allocated_at_ns: "", freed_at_ns: "2500000000", held_ns: "2500000000" });
    expect(cells(1)).toMatchObject({
      allocated_at_ns: "1500000000",
      allocated_at_s: "1.500000000",
      allocated_at: "1",
      freed_at_s: "",
      freed_at: "",
      requested_bytes: "48",
      role: "parameter",
    });
    expect(cells(2)).toMatchObject({
      name: "'=freed",
      source: '"a,b"',
      freed_at_s: "2.000000001",
      held_ns: "2000000001",
    });
  });

  it("contains addresses, where known", () => {
    expect(cells(0)).toMatchObject({ region: "", offset_bytes: "", address: "" });
    expect(cells(1)).toMatchObject({ region: "4096", offset_bytes: "512", address: "4608" });
  });

  it("sums to the bytes in use", () => {
    const sum = lines.reduce((bytes, _, line) => bytes + Number(cells(line)["charge_bytes"]), 0);
    expect(sum).toBe(165);
    expect(lines[3].length).toBe(lines[0].length);
    expect(cells(3)["name"]).toBe("rest");
  });
});
