import { describe, expect, it } from "vitest";
import { cssColor, inkOn, roleColors } from "../../base/colors";
import { ROLES } from "../generated/constants";

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
