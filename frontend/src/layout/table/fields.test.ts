import { describe, expect, it } from "vitest";
import { compileSearch } from "../../base/search";
import { type Field, fieldTexts, matchingRows, rowsCsv, sameText, sortRows } from "./fields";

type Row = { host: string; bytes: number | null };
const FIELDS: [Field<Row>, Field<Row>] = [
  { key: "host", csv: "host", value: ({ host }) => host },
  { key: "bytes", csv: "size_bytes", value: ({ bytes }) => bytes },
];
const ROWS: Row[] = [
  { host: "w-10", bytes: null },
  { host: "w-2", bytes: 4096 },
  { host: "w-9", bytes: 0 },
];
const hosts = (rows: readonly Row[]): string[] => rows.map(({ host }) => host);

const HAS = { texts: (row: Row) => fieldTexts(FIELDS, row) };
const SIZED = { ...HAS, bytes: (row: Row) => row.bytes };

describe("rows of a table", () => {
  it("are found by text and by size", () => {
    const found = (search: string, size: string): string[] =>
      hosts(matchingRows(ROWS, SIZED, compileSearch(search), size).rows);
    expect(found("w-(10|2)", "")).toEqual(["w-10", "w-2"]);
    expect(found("", "<1k")).toEqual(["w-9"]);
    expect(matchingRows(ROWS, SIZED, compileSearch("("), "much").errors).toHaveLength(2);
    // A filter of another table on the page.
    expect(matchingRows(ROWS, HAS, compileSearch(""), ">1k").rows).toHaveLength(3);
  });

  it("are sorted with unknown values last, and names by their numbers", () => {
    const [host, bytes] = FIELDS;
    expect(hosts(sortRows(ROWS, host, false))).toEqual(["w-2", "w-9", "w-10"]);
    expect(hosts(sortRows(ROWS, bytes, false))).toEqual(["w-9", "w-2", "w-10"]);
    expect(hosts(sortRows(ROWS, bytes, true))).toEqual(["w-2", "w-9", "w-10"]);
  });

  it("keep their order where they are equal, in both directions, or are sorted by ties", () => {
    const field = { ...FIELDS[1], order: () => "same" };
    for (const descending of [false, true]) {
      expect(sortRows(ROWS, field, descending)).toEqual(ROWS);
      const ties = ({ bytes }: Row): number => bytes ?? -1;
      expect(hosts(sortRows(ROWS, { ...field, ties }, descending))).toEqual(["w-2", "w-9", "w-10"]);
    }
  });

  it("are sorted as texts if numbers and texts are mixed", () => {
    const field: Field<string | number> = { key: "value", csv: "", value: (row) => row };
    expect(sortRows([16, "full", 8], field, false)).toEqual([8, 16, "full"]);
  });

  it("are saved with unknown values empty, and a last line", () => {
    expect(rowsCsv(ROWS.slice(0, 2), FIELDS)).toBe("host,size_bytes\r\nw-10,\r\nw-2,4096\r\n");
    expect(rowsCsv([], FIELDS, { size_bytes: 7 })).toBe("host,size_bytes\r\n,7\r\n");
    expect(rowsCsv([], [{ ...FIELDS[0], csv: "" }, FIELDS[1]])).toBe("size_bytes\r\n");
  });

  it("have a text in common if all are equal, and several or empty", () => {
    const same = (...texts: string[]): string | null => sameText(texts, (text) => text);
    expect([same("a", "a"), same("a", "b"), same("a"), same("", ""), same("")]).toEqual([
      "a",
      null,
      null,
      "",
      "",
    ]);
  });
});
