import { describe, expect, it } from "vitest";
import { fixtureRows } from "../../payload/recording/fixture";
import { commonFolder, firstGroup, groupRows, tableLines } from "./table_lines";

const rows = fixtureRows([
  { name: "a", op_name: "net/dense", shape: "f32[8]", size: 64, requested: 32 },
  { name: "b", op_name: "net/dense", shape: "f32[4]", size: 64, requested: 16 },
  { name: "c", op_name: "", shape: "f32[8]", size: 200 },
  { name: "d", op_name: "", size: 1000, start: -1 },
]);

describe("groupRows", () => {
  it("sums rows by name, largest first, and groups rows without a name by size and role", () => {
    expect(groupRows(rows, [0, 1, 2, 3], "op_name", true)).toMatchObject([
      { label: "0.98 KiB, temporary, live before the recording", known: false, rows: [3], bytes: 1000 },
      { label: "200 B, temporary", known: false, rows: [2], bytes: 200, requested: 200 },
      { label: "net/dense", known: true, rows: [0, 1], bytes: 128, requested: 48 },
    ]);
  });

  it("groups by other columns, with every byte in one group", () => {
    for (const by of ["op", "shape", "dtype", "source", "role", "size"] as const) {
      const groups = groupRows(rows, [0, 1, 2, 3], by, true);
      expect(groups.reduce((sum, group) => sum + group.bytes, 0)).toBe(1328);
      expect(new Set(groups.map((group) => group.key)).size).toBe(groups.length);
    }
  });
});

describe("firstGroup", () => {
  it("is by source line where most bytes have one, and else by what they have", () => {
    const with_source = fixtureRows([
      { source: "train.py:8", op_name: "a", size: 60 },
      { source: "train.py:9", op_name: "b", size: 20 },
      { op_name: "c", size: 30 },
    ]);
    expect(firstGroup(with_source, false)).toBe("source");
    expect(
      firstGroup(
        fixtureRows([
          { source: "a.py:1", size: 10 },
          { op_name: "b", size: 30 },
        ]),
        true,
      ),
    ).toBe("op_name");
  });

  it("without any name is by size, or of a program by role", () => {
    const nameless = fixtureRows([{ size: 10 }, { size: 20 }]);
    expect([firstGroup(nameless, true), firstGroup(nameless, false)]).toEqual(["size", "role"]);
    expect(firstGroup(fixtureRows([{ size: 10, role: 0 }]), false)).toBe("none");
  });
});

describe("tableLines", () => {
  it("lists and sorts the rows of open groups only", () => {
    const sorted: number[][] = [];
    const lines = tableLines(rows, Uint32Array.of(0, 1, 2, 3), {
      by: "op_name",
      allocator: true,
      isOpen: (key) => key === groupRows(rows, [0], "op_name", true)[0].key,
      sort: (members) => {
        sorted.push([...members]);
        return members.toReversed();
      },
    });
    expect(lines.map((line) => (line.kind === "row" ? line.row : line.kind))).toEqual([
      "group",
      "group",
      "group",
      1,
      0,
    ]);
    expect(sorted).toEqual([[0, 1]]);
  });
});

describe("commonFolder", () => {
  it("is what all files have in common, which says nothing", () => {
    expect(commonFolder(["/home/u/nn/model.py:3", "/home/u/nn/optim.py:9"])).toBe("/home/u/nn/");
    expect(commonFolder(["/home/u/nn/model.py:3", "/home/u/main.py:9"])).toBe("/home/u/");
    expect(commonFolder(["a/x.py:1", "b/x.py:1"])).toBe("");
    expect(commonFolder(["/home/u/model.py:3"])).toBe("");
  });
});
