import { expect, it } from "vitest";
import { readSorting, writeSorting } from "./sorting";

const KEYS = ["name", "size"] as const;
const FIRST = { key: "size", descending: true } as const;

it("reads what it writes", () => {
  for (const key of KEYS)
    for (const descending of [false, true])
      expect(readSorting(writeSorting({ key, descending }), KEYS, FIRST)).toEqual({ key, descending });
});

it("uses the default for a column that the table lacks", () => {
  for (const text of ["", "-", "peak", "-peak", "--name", "Name"])
    expect(readSorting(text, KEYS, FIRST)).toBe(FIRST);
});
