/**
 * Role colors, the same in every chart. The hues are the Okabe-Ito set, which people with any common kind of
 * color blindness can tell apart. Lightness is adjusted to contrast with a white and with a near-black page.
 * Numbers are 0xRRGGBB, in the order of ROLES in payload/recording/roles.ts.
 */
const LIGHT = [
  0x8d9299, // unknown: gray
  0x0072b2, // parameter: blue
  0x56b4e9, // optimizer state: sky
  0x5d6bd0, // input: indigo
  0xd55e00, // gradient: vermillion
  0xe69f00, // activation: orange
  0xcc79a7, // output: pink
  0xc8b400, // constant: yellow, darkened
  0x009e73, // temporary: green
  0x7b5ea7, // executable: violet
  0x96755b, // thread-local: brown
  0x00606b, // state: dark teal
] as const;

const DARK = [
  0x8d9299, // unknown
  0x2f8fd0, // parameter
  0x7cc7f2, // optimizer state
  0x8490ee, // input
  0xe9742b, // gradient
  0xf0b429, // activation
  0xd98bb8, // output
  0xe8dc52, // constant
  0x1fb68a, // temporary
  0x9d82c9, // executable
  0xb08c70, // thread-local
  0xa5eef0, // state
] as const;

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
