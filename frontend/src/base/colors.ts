import { ROLE_COLORS } from "./role_colors";

const LIGHT = ROLE_COLORS.map(([light]) => light);
const DARK = ROLE_COLORS.map(([, dark]) => dark);

/** Scale of sizes, for rows without roles: of the viridis scale, from what is near to the page to what stands out. */
const SIZES_LIGHT = [
  0x89d447, 0x55c467, 0x2fb07d, 0x209c89, 0x25858e, 0x2e6f8e, 0x38578b, 0x423d83, 0x472172, 0x440154,
] as const;

const SIZES_DARK = [
  0x3a548b, 0x306a8e, 0x287d8e, 0x22928b, 0x26a684, 0x37b878, 0x61c95f, 0x93d641, 0xc8e029, 0xfde725,
] as const;

/** Number of the first size color in `rowColors`, and how many there are. */
export const FIRST_SIZE_COLOR = LIGHT.length;
export const SIZE_COLORS = SIZES_LIGHT.length;

/** Added to a color for memory that is reserved for a buffer before it is written, or after its last use. */
export const RESERVED = 32;

/** Return the colors of blocks: those of roles, then those of sizes. */
export function rowColors(dark: boolean): readonly number[] {
  return [...roleColors(dark), ...(dark ? SIZES_DARK : SIZES_LIGHT)];
}

export function roleColors(dark: boolean): readonly number[] {
  return dark ? DARK : LIGHT;
}

/** Format 0xRRGGBB as "#rrggbb". */
export function cssColor(rgb: number): string {
  return `#${rgb.toString(16).padStart(6, "0")}`;
}

/** Return black or white, whichever is easier to read on 0xRRGGBB. */
export function inkOn(rgb: number): string {
  // Contrast with black is (L + .05) / .05 and with white 1.05 / (L + .05); they are equal at L = 0.179.
  return luminanceOf(rgb) > 0.179 ? "#000000" : "#ffffff";
}

/** Return the contrast ratio of two colors, 1 to 21 (WCAG 2). */
export function contrast(a: number, b: number): number {
  const [dark, light] = [luminanceOf(a), luminanceOf(b)].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
}

/** Return the relative luminance of 0xRRGGBB (WCAG 2). */
function luminanceOf(rgb: number): number {
  const [red, green, blue] = [16, 8, 0].map((shift) => {
    const part = ((rgb >> shift) & 255) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
