import { describe, expect, it } from "vitest";
import { regionTable } from "./fixture";
import { addressesFromRegions } from "./addresses";

const rows = { region: Int32Array.of(1, 1, -1), offset: Float64Array.of(64, -1, -1) };

describe("addresses of rows", () => {
  it("name a program's buffer allocation, which has no address", () => {
    const { region, address } = addressesFromRegions(
      rows,
      regionTable([
        { index: 3, address: NaN },
        { index: 7, address: NaN },
      ]),
    );
    expect([0, 1, 2].map(region)).toEqual([7, 7, NaN]);
    expect([0, 1, 2].map(address)).toEqual([NaN, NaN, NaN]);
  });

  it("name an allocator's segment by its address", () => {
    const base = 0x7f00_0000_0000;
    const { region, address } = addressesFromRegions(
      rows,
      regionTable([
        { index: 512, address: 512 },
        { index: base, address: base },
      ]),
    );
    expect([0, 1, 2].map(region)).toEqual([base, NaN, NaN]);
    expect([0, 1, 2].map(address)).toEqual([base + 64, NaN, NaN]);
  });
});
