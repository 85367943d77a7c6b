import { describe, expect, it } from "vitest";
import { cssColor, inkOn, roleColors } from "../../base/colors";
import { ROLES } from "../generated/constants";
import { fixtureRows, regionTable } from "./fixture";
import { addressesFromRegions } from "./rows";

describe("colors of an allocator's rows", () => {
  const role = 0;
  const KIB = 1024;

  it("are the same for equal sizes, and gray only for rows older than the recording", () => {
    const { color } = fixtureRows([
      { role, size: 64 * KIB },
      { role, size: 128 * KIB },
      { role, size: 64 * KIB },
      { role, size: 64 * KIB, start: -1 },
    ]);
    expect(color[0]).toBe(color[2]);
    expect(color[3]).toBe(0);
    expect(Math.min(color[0], color[1])).toBeGreaterThan(0);
  });

  it("distinguish sizes that are powers of two", () => {
    const { color } = fixtureRows(Array.from({ length: 20 }, (_, i) => ({ role, size: 256 * 2 ** i })));
    expect(new Set(color).size).toBeGreaterThan(6);
  });

  it("are role colors if the profile has any role", () => {
    expect([...fixtureRows([{ role: 0 }, { role: 4 }]).color]).toEqual([0, 4]);
  });
});

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

describe("role colors", () => {
  it.each([false, true])("differ for every role (dark: %s)", (dark) => {
    const colors = roleColors(dark);
    expect(colors).toHaveLength(ROLES.length);
    expect(new Set(colors).size).toBe(ROLES.length);
  });

  it("are formatted for CSS", () => {
    expect(cssColor(0x0072b2)).toBe("#0072b2");
    expect(cssColor(0xf)).toBe("#00000f");
  });

  it("have a readable text color", () => {
    expect([0x0072b2, 0xf0e442, 0xffffff, 0x000000].map(inkOn)).toEqual([
      "#ffffff",
      "#000000",
      "#000000",
      "#ffffff",
    ]);
  });
});
