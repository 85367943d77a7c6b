import { describe, expect, it } from "vitest";
import { cssColor, inkOn, roleColors } from "../../base/colors";
import { ROLES } from "./roles";

describe("colors", () => {
  it.each([false, true])("give every role one of its own (dark: %s)", (dark) => {
    const colors = roleColors(dark);
    expect(colors).toHaveLength(ROLES.length);
    expect(new Set(colors).size).toBe(ROLES.length);
  });

  it("are written as CSS has them", () => {
    expect(cssColor(0x0072b2)).toBe("#0072b2");
    expect(cssColor(0xf)).toBe("#00000f");
  });

  it("get the ink that can be read on them", () => {
    expect([0x0072b2, 0xf0e442, 0xffffff, 0x000000].map(inkOn)).toEqual([
      "#ffffff",
      "#000000",
      "#000000",
      "#ffffff",
    ]);
  });
});
