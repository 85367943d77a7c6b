import { describe, expect, it } from "vitest";
import { contrast, FIRST_SIZE_COLOR, roleColors, rowColors, SIZE_COLORS } from "./colors";

/** CIE Lab of 0xRRGGBB, in which distances are as large as people see them. */
function labOf(rgb: number): [number, number, number] {
  const [r, g, b] = [16, 8, 0].map((shift) => {
    const part = ((rgb >> shift) & 255) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  const [x, y, z] = [
    (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505,
    0.2126 * r + 0.7152 * g + 0.0722 * b,
    (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089,
  ].map((t) => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116));
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

const distance = (a: number, b: number): number =>
  Math.hypot(...labOf(a).map((part, i) => part - labOf(b)[i]));

describe.each([
  ["light", false, 0xffffff],
  ["dark", true, 0x1a1d21],
] as const)("the colors of sizes in the %s theme", (_, dark, background) => {
  const sizes = rowColors(dark).slice(FIRST_SIZE_COLOR);

  it("are no colors of roles, nor close to one or to each other", () => {
    expect(sizes.length).toBe(SIZE_COLORS);
    sizes.forEach((size, i) => {
      for (const other of [...roleColors(dark), ...sizes.slice(0, i)])
        expect(distance(size, other)).toBeGreaterThan(30);
    });
  });

  it("are visible on the page", () => {
    for (const size of sizes) expect(contrast(size, background)).toBeGreaterThan(1.5);
  });
});
