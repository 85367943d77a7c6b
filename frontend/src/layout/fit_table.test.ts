import { describe, expect, it } from "vitest";
import { fitCandidate, TWO_CHOICES } from "../payload/responses/fixture";
import { boundBy, largestLines } from "./fit_table";

const step = TWO_CHOICES;

describe("the table of largest values", () => {
  const lines = largestLines(step);

  it("has a line for each choice, also where none fits", () => {
    expect(lines.map(({ largest, without }) => [largest?.value, without?.value])).toEqual([
      [52, 8],
      [undefined, undefined],
    ]);
  });

  it("names parts of the peak, else roles", () => {
    const parts = [
      { name: "activations of layer_*", bytes: 2 ** 31 },
      { name: "tiny", bytes: 1 },
    ];
    expect(boundBy(fitCandidate(8, 4, { parts }))).toBe("activations of layer_* 50%");
    expect(boundBy(fitCandidate(8, null))).toBeNull();
  });
});
