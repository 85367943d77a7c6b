import { describe, expect, it } from "vitest";
import { constantText, isBlank, splitConstant } from "../../layout/table/constant_columns";
import type { RowSortKey } from "../../layout/table/row_order";
import { fixtureRows } from "../../payload/recording/fixture";
import { type ColumnView, momentColumns } from "./columns";

function split(of: Parameters<typeof fixtureRows>[0]): { keys: string[]; constant: string[] } {
  const rows = fixtureRows(of);
  const found = splitConstant<ColumnView, RowSortKey>(momentColumns(), (key) =>
    isBlank(rows, key) ? "" : constantText(rows, key),
  );
  return {
    keys: found.columns.map(({ key }) => key),
    constant: found.constant.map(([heading, value]) => `${heading}: ${value}`),
  };
}

describe("columns", () => {
  it("are those with any text, if there is one row", () => {
    const row = { name: "a", size: 10, unpadded: 4, role: 1, shape: "f32[1]", op: "copy" };
    expect(split([row]).keys).toEqual(["name", "role", "size", "unpadded", "expansion", "shape", "op"]);
  });

  it("that are the same in all rows are text, and empty ones are left out", () => {
    const same = { size: 10, unpadded: 10, role: 1, shape: "f32[1]" };
    const { keys, constant } = split([
      { ...same, name: "a", op: "copy" },
      { ...same, name: "b", op: "dot" },
    ]);
    expect(keys).toEqual(["name", "size", "op"]);
    expect(constant).toEqual(["Category: parameter", "Unpadded: as Size", "Exp.: 1.00×", "Shape: f32[1]"]);
  });
});
