import { describe, expect, it } from "vitest";
import { indices, radixSortBy } from "./sort";

describe("radixSortBy", () => {
  it("sorts as comparison does and keeps the order of equal values", () => {
    // The values differ in all four 16-bit digits and include negative and equal numbers.
    const values = Float64Array.from(
      { length: 2000 },
      (_, i) => ((i * 7919) % 500) * 2 ** ((i % 4) * 14) - 99,
    );
    const expected = [...values.keys()].sort((a, b) => values[a] - values[b] || a - b);
    expect([...radixSortBy(values, indices(values.length))]).toEqual(expected);
  });

  it("sorts only the given items", () => {
    expect([...radixSortBy(Int32Array.of(5, 3, 9, -1), Uint32Array.of(2, 0, 3))]).toEqual([3, 0, 2]);
    expect([...radixSortBy(Float64Array.of(1, 1), Uint32Array.of(1, 0))]).toEqual([1, 0]);
    expect([...radixSortBy(Float64Array.of(), new Uint32Array(0))]).toEqual([]);
  });
});
