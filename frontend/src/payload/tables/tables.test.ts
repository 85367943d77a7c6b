import { describe, expect, it } from "vitest";
import { encodeTables } from "../recording/fixture";
import { decodeTables } from "./tables";

const answer = encodeTables(
  { peak: 3 },
  {
    t: {
      small: { kind: "u8", values: [1, 2, 3] },
      signed: { kind: "i32", values: [-1, 0, 7] },
      bytes: { kind: "f64", values: [2 ** 52, 0.5, 0] },
      name: { kind: "text", values: ["fusion.1", "Größe", "fusion.1"] },
    },
  },
);

describe("decodeTables", () => {
  it("reads columns of every type, text and metadata", () => {
    const tables = decodeTables(answer);
    const table = tables.table("t");
    expect(tables.meta).toEqual({ peak: 3 });
    expect(table.length).toBe(3);
    expect([...table.u8("small")]).toEqual([1, 2, 3]);
    expect([...table.i32("signed")]).toEqual([-1, 0, 7]);
    expect([...table.f64("bytes")]).toEqual([2 ** 52, 0.5, 0]);
    expect([0, 1, 2].map((row) => table.text("name").at(row))).toEqual(["fusion.1", "Größe", "fusion.1"]);
  });

  it("does not copy the columns", () => {
    expect(decodeTables(answer).table("t").f64("bytes").buffer).toBe(answer);
  });

  it("replaces invalid UTF-8 with the replacement character", () => {
    const broken = answer.slice(0);
    const bytes = new Uint8Array(broken);
    // "G" of "Größe" becomes a lone continuation byte.
    bytes[bytes.findLastIndex((byte, i) => byte === 0x47 && bytes[i + 1] === 0x72)] = 0x80;
    expect(decodeTables(broken).table("t").text("name").at(1)).toBe("\ufffdröße");
  });

  it("returns the empty text for the code -1", () => {
    const column = decodeTables(answer).table("t").text("name");
    column.codes[2] = 0xffffffff;
    expect(column.at(2)).toBe("");
  });

  it("rejects data that is not a table", () => {
    expect(() => decodeTables(new TextEncoder().encode("<!doctype html>").buffer)).toThrow(
      /not in the table format/,
    );
    expect(() => decodeTables(new ArrayBuffer(3))).toThrow(/not in the table format/);
  });

  it("names a missing column", () => {
    expect(() => decodeTables(answer).table("t").f64("size")).toThrow(/table t has no column size/);
    expect(() => decodeTables(answer).table("rows")).toThrow(/no table rows/);
  });
});
