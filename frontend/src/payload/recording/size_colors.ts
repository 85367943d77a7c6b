import { FIRST_SIZE_COLOR, SIZE_COLORS } from "../../base/colors";

/** The columns of Rows that decide the color. */
interface Sizes {
  length: number;
  size: Float64Array;
  start: Int32Array;
}

/**
 * Return one color for each size: repeated requests of the same size usually have the same purpose, even if
 * the profile does not name it. Different sizes may share a color. Color 0, gray, marks rows older than the recording.
 */
export function sizeColors({ length, size, start }: Sizes): Uint8Array {
  const colors = new Uint8Array(length);
  for (let row = 0; row < length; row++) if (start[row] >= 0) colors[row] = colorOfSize(size[row]);
  return colors;
}

function colorOfSize(bytes: number): number {
  // Sizes are multiples of powers of two, so their low digits carry little information. 61 shares no factor
  // with 2 or 10.
  return FIRST_SIZE_COLOR + ((Math.floor(bytes / 64) % 61) % SIZE_COLORS);
}
