import { describe, expect, it } from "vitest";
import { compileSearch } from "../../base/search";
import type { ComparedEntry } from "../../payload/generated/answers";
import { entriesCsv, filterEntries, sortEntries } from "./change_table";

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
const sites = (entries: readonly ComparedEntry[]) => entries.map(({ site }) => site);

describe("filterEntries", () => {
  it("keeps the wanted kinds, or all kinds", () => {
    expect(
      sites(filterEntries(ENTRIES, new Set(["only_a", "only_b"]), compileSearch(""), "").entries),
    ).toEqual(["b", "c"]);
    expect(filterEntries(ENTRIES, new Set(), compileSearch(""), "").entries).toHaveLength(4);
  });

  it("matches text, and the absolute size of the change", () => {
    expect(sites(filterEntries(ENTRIES, new Set(), compileSearch("^[bd]$"), "").entries)).toEqual(["b", "d"]);
    expect(sites(filterEntries(ENTRIES, new Set(), compileSearch("temporary"), ">25").entries)).toEqual([
      "a",
      "b",
      "d",
    ]);
    expect(filterEntries(ENTRIES, new Set(), compileSearch("("), "lots").errors).toHaveLength(2);
  });
});

describe("sortEntries", () => {
  it("sorts by the size of the change, by bytes and by text", () => {
    expect(sites(sortEntries(ENTRIES, { key: "delta", descending: true }))).toEqual(["a", "b", "d", "c"]);
    expect(sites(sortEntries(ENTRIES, { key: "bytes_b", descending: false }))).toEqual(["b", "c", "d", "a"]);
    expect(sites(sortEntries(ENTRIES, { key: "site", descending: true }))).toEqual(["d", "c", "b", "a"]);
  });
});

describe("entriesCsv", () => {
  it("contains signed changes in bytes, and no formulas", () => {
    const [, line] = entriesCsv([entry("=cmd()", 70, 20)]).split("\r\n");
    expect(line).toBe("shrunk,70,20,-50,1,1,temporary,f32[8],,'=cmd(),");
  });
});
