import { describe, expect, it } from "vitest";
import { formatCsv } from "./csv";

const saved = (value: string | number): string => formatCsv([value], [["a", (row) => row]]);

describe("formatCsv", () => {
  it("disarms formulas, also with other operators and after what spreadsheets skip", () => {
    const operators = ["=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\ufe66", "\u2212"];
    const skipped = ["", " ", "\t", "\u00a0", "\ufeff", "\u200b", "\u0000"];
    for (const operator of operators)
      for (const before of skipped)
        expect(saved(`${before}${operator}1`)).toBe(`a\r\n'${before}${operator}1\r\n`);
    for (const value of ["a=1", 1, -1]) expect(saved(value)).toBe(`a\r\n${value}\r\n`);
  });
});
