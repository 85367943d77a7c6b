import { describe, expect, it } from "vitest";
import { holeAt, holesAt, unplacedBytes } from "./holes";
import { rowsOf } from "./timeline_fixture";

/** At position 2: rows 0, 1 and 3 with 5 and 20 free bytes between them; row 2 is freed; row 4 is nowhere. */
const rows = rowsOf([
  { size: 10, offset: 5, defined: 0, last_used: 9 },
  { size: 10, offset: 20, defined: 2, last_used: 9 },
  { size: 10, offset: 30, defined: 0, last_used: 1 },
  { size: 10, offset: 50, defined: 0, last_used: 2 },
  { size: 70, offset: -1, defined: 0, last_used: 9 },
  { size: 4, offset: 22, defined: 0, last_used: 9 },
]);

describe("holesAt", () => {
  it("lists what is free between live rows, the largest first, and who holds it at either side", () => {
    expect(holesAt(rows, 2)).toEqual([
      { from: 30, to: 50, below: 1, above: 3 },
      { from: 0, to: 5, below: -1, above: 0 },
      { from: 15, to: 20, below: 0, above: 1 },
    ]);
  });

  it("ends with the highest row that is live", () => {
    expect(holesAt(rows, 3).map(({ to }) => to)).toEqual([5, 20]);
  });
});

describe("holeAt", () => {
  it("is the hole that the list has, for each of its bytes", () => {
    for (const position of [0, 2, 3])
      for (let byte = 0; byte < 70; byte++) {
        const listed = holesAt(rows, position).find(({ from, to }) => from <= byte && byte < to);
        expect(holeAt(rows, position, byte)).toEqual(listed ?? null);
      }
  });
});

it("counts live bytes that lie nobody knows where", () => {
  expect(unplacedBytes(rows, 2)).toBe(70);
  expect(unplacedBytes(rows, 10)).toBe(0);
});
