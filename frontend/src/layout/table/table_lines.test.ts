import { describe, expect, it } from "vitest";
import { fixtureRows } from "../../payload/recording/fixture";
import { groupRows } from "./table_lines";

const rows = fixtureRows([
  { name: "a", op_name: "net/dense", shape: "f32[8]", size: 64, requested: 32 },
  { name: "b", op_name: "net/dense", shape: "f32[4]", size: 64, requested: 16 },
  { name: "c", op_name: "", shape: "f32[8]", size: 200 },
  { name: "d", op_name: "", size: 1000, start: -1 },
]);

describe("groupRows", () => {
  it("sums rows by name, largest first, and separates rows older than the recording from unnamed rows", () => {
    expect(groupRows(rows, [0, 1, 2, 3], "op_name")).toMatchObject([
      { label: "live before the recording", rows: [3], bytes: 1000, requested: 1000 },
      { label: "none in the profile", rows: [2], bytes: 200, requested: 200 },
      { label: "net/dense", rows: [0, 1], bytes: 128, requested: 48 },
    ]);
  });

  it("groups by other columns, with every byte in one group", () => {
    for (const by of ["op", "shape", "dtype", "source", "role"] as const) {
      const groups = groupRows(rows, [0, 1, 2, 3], by);
      expect(groups.reduce((sum, group) => sum + group.bytes, 0)).toBe(1328);
      expect(new Set(groups.map((group) => group.key)).size).toBe(groups.length);
    }
  });
});
