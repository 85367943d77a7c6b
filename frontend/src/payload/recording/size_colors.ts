import type { Rows } from "./rows";

/** Colors to choose from: 1 to 10 of base/colors.ts. 0, a gray, stays for what was live before the recording. */
const COLORS = 10;

/**
 * One color per size: what asks for the same bytes again and again is mostly one thing, whether or not the profile
 * names it. Sizes may share a color; one size never has two.
 */
export function sizeColors({ length, size, start }: Pick<Rows, "length" | "size" | "start">): Uint8Array {
  const colors = new Uint8Array(length);
  for (let row = 0; row < length; row++) if (start[row] >= 0) colors[row] = colorOfSize(size[row]);
  return colors;
}

function colorOfSize(bytes: number): number {
  // Sizes are multiples of powers of two, so their low digits say little: 61 has no factor in common with 2 or 10.
  return 1 + ((Math.floor(bytes / 64) % 61) % COLORS);
}
