import { describe, expect, it } from "vitest";
import { compileSearch } from "../../base/search";
import { type Field, filterList, listCsv, sortList } from "./list_rows";

type Row = { host: string; bytes: number | null };
const FIELDS: Field<Row>[] = [
  { key: "host", csv: "host", value: ({ host }) => host },
  { key: "bytes", csv: "size_bytes", value: ({ bytes }) => bytes },
];
const ROWS: Row[] = [
  { host: "w-10", bytes: null },
  { host: "w-2", bytes: 4096 },
  { host: "w-9", bytes: 0 },
];
const hosts = (rows: readonly Row[]): string[] => rows.map(({ host }) => host);

describe("rows of a list", () => {
  it("are found by text and by size", () => {
    const bytes = (row: Row): number | null => row.bytes;
    expect(hosts(filterList(ROWS, FIELDS, bytes, compileSearch("w-(10|2)"), "").rows)).toEqual([
      "w-10",
      "w-2",
    ]);
    expect(hosts(filterList(ROWS, FIELDS, bytes, compileSearch(""), "<1k").rows)).toEqual(["w-9"]);
    expect(filterList(ROWS, FIELDS, bytes, compileSearch(""), "much").errors).toHaveLength(1);
    // A filter of another table on the page.
    expect(filterList(ROWS, FIELDS, null, compileSearch(""), ">1k").rows).toHaveLength(3);
  });

  it("are sorted with unknown values last, and names by their numbers", () => {
    expect(hosts(sortList(ROWS, FIELDS, { key: "host", descending: false }))).toEqual(["w-2", "w-9", "w-10"]);
    for (const descending of [false, true])
      expect(sortList(ROWS, FIELDS, { key: "bytes", descending }).at(-1)?.host).toBe("w-10");
    expect(sortList(ROWS, FIELDS, { key: "", descending: false })).toBe(ROWS);
  });

  it("are saved with unknown values empty", () => {
    expect(listCsv(ROWS.slice(0, 2), FIELDS)).toBe("host,size_bytes\r\nw-10,\r\nw-2,4096\r\n");
  });
});
