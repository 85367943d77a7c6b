import { describe, expect, it } from "vitest";
import { contrast, FIRST_SIZE_COLOR, rowColors, SIZE_COLORS } from "./colors";

describe.each([
  ["light", false, 0xffffff],
  ["dark", true, 0x1a1d21],
] as const)("the colors of sizes in the %s theme", (_, dark, background) => {
  const sizes = rowColors(dark).slice(FIRST_SIZE_COLOR);

  it("are one scale: the larger, the more they contrast with the page", () => {
    expect(sizes.length).toBe(SIZE_COLORS);
    const contrasts = sizes.map((size) => contrast(size, background));
    expect(contrasts).toEqual([...contrasts].sort((a, b) => a - b));
    contrasts.slice(1).forEach((each, i) => expect(each / contrasts[i]).toBeGreaterThan(1.15));
  });

  it("are visible on the page", () => {
    for (const size of sizes) expect(contrast(size, background)).toBeGreaterThan(1.5);
  });
});
