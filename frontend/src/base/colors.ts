import { ROLE_COLORS } from "./role_colors";

const LIGHT = ROLE_COLORS.map(([light]) => light);
const DARK = ROLE_COLORS.map(([, dark]) => dark);

/**
 * Colors of sizes, for rows without roles. Each differs from every role's color by at least 32 in CIE Lab, in which
 * a difference of 2 is visible and neighboring roles differ by 20.
 */
const SIZES_LIGHT = [
  0x980028, 0x506800, 0xc0d088, 0xf88078, 0x900068, 0x00e0e8, 0x783800, 0xf8b878, 0x783848, 0xe090f8,
] as const;

const SIZES_DARK = [
  0x980030, 0x305000, 0x880870, 0x703800, 0x005048, 0x683848, 0x78b048, 0xf87878, 0x403898, 0x908018,
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
