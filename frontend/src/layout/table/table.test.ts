import { describe, expect, it } from "vitest";
import { compileSearch } from "../../base/search";
import { fixtureRows } from "../../payload/recording/fixture";
import { filterRows, parseSizeFilter } from "./table_filter";
import { tableLines } from "./table_lines";

const KIB = 1024;
const rows = fixtureRows([
  { name: "fusion.10", role: 8, size: 64 * KIB, requested: 32 * KIB, op_name: "layer_1/mlp", defined: 4 },
  { name: "param.1", role: 1, size: 128 * KIB, source: "model.py:12", defined: -1 },
  { name: "fusion.9", role: 8, size: 4 * KIB, shape: "f32[1024]{0}", defined: 2 },
  { name: "copy.2", role: 8, size: 2 * KIB, requested: 0, defined: 2 },
]);
const ALL = Uint32Array.of(0, 1, 2, 3);

describe("filtering", () => {
  const filtered = (search: string, size = ""): number[] => [
    ...filterRows(rows, ALL, compileSearch(search), size).rows,
  ];

  it("searches name, op name, source and shape", () => {
    expect(filtered("fusion\\.\\d$")).toEqual([2]);
    expect(filtered("layer_1")).toEqual([0]);
    expect(filtered("model.py:12")).toEqual([1]);
    expect(filtered("f32[1024]{0}")).toEqual([2]);
    expect(filtered("nowhere")).toEqual([]);
  });

  it("combines size filters with text", () => {
    expect(filtered("", ">64KiB")).toEqual([1]);
    expect(filtered("", ">=64 k")).toEqual([0, 1]);
    expect(filtered("fusion", "<1MiB")).toEqual([0, 2]);
  });

  it("reports invalid input and ignores it", () => {
    const { rows: found, errors } = filterRows(rows, ALL, compileSearch("f32[1024"), "huge");
    expect([...found]).toEqual([2]);
    expect(errors).toHaveLength(2);
    expect(errors[0]).toContain("“huge” is not a size");
    expect(errors[1]).toMatch(/plain text/);
  });
});

describe("parseSizeFilter", () => {
  it.each([
    [">1MiB", 2 ** 20, false],
    [">1MiB", 2 ** 20 + 1, true],
    ["<= 512 KiB", 512 * KIB, true],
    ["<512KiB", 512 * KIB, false],
    ["1KiB..2KiB", 2 * KIB, true],
    ["1KiB..2KiB", 2 * KIB + 1, false],
    ["64k", 64 * KIB, true],
    ["=64k", 64 * KIB + 1, false],
  ])("%s of %d is %s", (text, bytes, answer) => {
    expect(parseSizeFilter(text)?.(bytes)).toBe(answer);
  });

  it("rejects text that is not a size", () => {
    expect(parseSizeFilter(">")).toBeNull();
    expect(parseSizeFilter("1..x")).toBeNull();
  });
});

describe("lines", () => {
  const inOrder = (members: readonly number[]): readonly number[] => members;
  const bySize = Uint32Array.of(1, 0, 2, 3);

  it("folds buffers below 16 KiB into one line that expands", () => {
    const folded = tableLines(rows, bySize, {
      by: "none",
      allocator: false,
      isOpen: () => false,
      sort: inOrder,
    });
    expect(folded).toEqual([
      { kind: "row", row: 1 },
      { kind: "row", row: 0 },
      { kind: "small", key: "small", count: 2, bytes: 6 * KIB, open: false },
    ]);
    const open = tableLines(rows, bySize, {
      by: "none",
      allocator: false,
      isOpen: (key) => key === "small",
      sort: inOrder,
    });
    expect(open.slice(3)).toEqual([
      { kind: "row", row: 2 },
      { kind: "row", row: 3 },
    ]);
  });

  it("does not fold a single small buffer", () => {
    const lines = tableLines(rows, Uint32Array.of(1, 2), {
      by: "none",
      allocator: false,
      isOpen: () => false,
      sort: inOrder,
    });
    expect(lines.map((line) => line.kind)).toEqual(["row", "row"]);
  });

  it("groups by role, largest first, and collapses", () => {
    const isOpen = (key: string): boolean => key !== "role-8";
    const lines = tableLines(rows, bySize, { by: "role", allocator: false, isOpen, sort: inOrder });
    expect(lines.map((line) => (line.kind === "row" ? line.row : line))).toMatchObject([
      { kind: "group", key: "role-1", label: "parameter", count: 1, bytes: 128 * KIB, open: true },
      1,
      { kind: "group", key: "role-8", label: "temporary", count: 3, bytes: 70 * KIB, open: false },
    ]);
  });

  it("folds nothing for an allocator, whose small allocations may be many", () => {
    const lines = tableLines(rows, bySize, {
      by: "none",
      allocator: true,
      isOpen: () => false,
      sort: inOrder,
    });
    expect(lines.map((line) => line.kind)).toEqual(["row", "row", "row", "row"]);
  });
});
