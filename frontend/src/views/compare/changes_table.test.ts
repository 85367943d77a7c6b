import { describe, expect, it } from "vitest";
import { entryTexts } from "../../layout/compare/changes";
import type { ComparedEntry } from "../../payload/generated/answers";
import { savedLines, sortedBy } from "../tables/fixture";
import { changeColumns } from "./changes_table";

function entry(
  site: string,
  bytes_a: number,
  bytes_b: number,
  patch: Partial<ComparedEntry> = {},
): ComparedEntry {
  return {
    change: bytes_a === 0 ? "only_b" : bytes_b === 0 ? "only_a" : bytes_b > bytes_a ? "grown" : "shrunk",
    site,
    name: "",
    op: "",
    op_name: site,
    source: "",
    role: 8,
    dtype: "",
    shape: "f32[8]",
    shape_before: "",
    row_a: 0,
    row_b: 0,
    bytes_a,
    bytes_b,
    allocations_a: 1,
    allocations_b: 1,
    step: 0,
    ...patch,
  };
}
const ENTRIES = [entry("a", 10, 90), entry("b", 70, 0), entry("c", 0, 5), entry("d", 50, 20)];

describe("the table of changes", () => {
  const columns = changeColumns(ENTRIES);
  const sorted = (key: string, descending: boolean): string[] =>
    sortedBy(columns, ENTRIES, key, descending).map(({ site }) => site);

  it("is sorted by the size of the change, by bytes and by text", () => {
    expect(sorted("delta", true)).toEqual(["a", "b", "d", "c"]);
    expect(sorted("bytes_b", false)).toEqual(["b", "c", "d", "a"]);
    expect(sorted("site", true)).toEqual(["d", "c", "b", "a"]);
  });

  it("is saved with signed changes in bytes, and without formulas", () => {
    expect(savedLines(columns, [entry("=cmd()", 70, 20)])).toEqual([
      "change,bytes_a,bytes_b,change_bytes,allocations_a,allocations_b,role,shape,shape_before,site,source",
      "shrunk,70,20,-50,1,1,temporary,f32[8],,'=cmd(),",
    ]);
  });

  it("states what all changes have in common in a line of text, and leaves out what none has", () => {
    const constant = columns.flatMap(({ key, constant: text = null }) =>
      text === null ? [] : [[key, text]],
    );
    expect(constant).toEqual([
      ["role", "temporary"],
      ["shape", "f32[8]"],
      ["source", ""],
    ]);
  });

  it("is searched for op names and roles", () => {
    expect(entryTexts(entry("a", 1, 2, { op_name: "mlp" }))).toEqual(
      expect.arrayContaining(["mlp", "temporary"]),
    );
  });
});
