/** Weight of a block that covers the whole of a pixel. */
export const FULL = 1024;

/** A pixel that anything touches takes at least this share of its colour, so that nothing is ever shown as nothing. */
const LEAST_SHARE = 0.35;

/** Channels per cell: weight, and red, green, blue times weight. */
const CHANNELS = 4;

/**
 * Blocks too small to be drawn one by one, added up: each pixel takes the mean colour of what lies in it, the stronger
 * the more of it is covered.
 *
 * A block writes only the four corners of its rectangle; summing up rows and columns afterwards gives every pixel the
 * sum over the blocks that cover it. So a block costs the same whatever its area. The sums are whole numbers, where what
 * one corner adds another takes away exactly: no trace is left where there is no block. They wrap at 2^32, which one
 * pixel reaches when 8000 blocks all cover the whole of it.
 */
export class Texture {
  private width = 0;
  private height = 0;
  /** One column and one row more than the picture, for corners at its far edges. */
  private corners = new Int32Array(0);
  private sums = new Int32Array(0);
  /** Blocks that open less blocks that close at each row, and whether any corner is there. */
  private opened = new Int32Array(0);
  private touched = new Uint8Array(0);

  /** Makes room for a picture of width x height pixels. */
  resize(width: number, height: number): void {
    if (width === this.width && height === this.height) return;
    this.width = width;
    this.height = height;
    this.corners = new Int32Array((width + 1) * (height + 1) * CHANNELS);
    this.sums = new Int32Array(width * CHANNELS);
    this.opened = new Int32Array(height + 1);
    this.touched = new Uint8Array(height + 1);
  }

  /** Adds a block over whole pixels [left, right) x [top, bottom) of the picture. */
  add(left: number, top: number, right: number, bottom: number, weight: number, colour: number): void {
    const red = weight * (colour & 255);
    const green = weight * ((colour >>> 8) & 255);
    const blue = weight * ((colour >>> 16) & 255);
    this.corner(left, top, weight, red, green, blue);
    this.corner(right, top, -weight, -red, -green, -blue);
    this.corner(left, bottom, -weight, -red, -green, -blue);
    this.corner(right, bottom, weight, red, green, blue);
    this.opened[top] += 1;
    this.opened[bottom] -= 1;
    this.touched[top] = this.touched[bottom] = 1;
  }

  private corner(x: number, y: number, weight: number, red: number, green: number, blue: number): void {
    const corners = this.corners;
    const at = (y * (this.width + 1) + x) * CHANNELS;
    corners[at] += weight;
    corners[at + 1] += red;
    corners[at + 2] += green;
    corners[at + 3] += blue;
  }

  /** Blends what was added over `pixels` and forgets it. */
  blendInto(pixels: Uint32Array): void {
    const { width, height, sums, opened, touched } = this;
    let open = 0;
    for (let y = 0; y <= height; y++) {
      open += opened[y];
      if (touched[y] !== 0) this.sumRow(y);
      if (open > 0) blendRow(pixels, y * width, sums, width);
      opened[y] = 0;
      touched[y] = 0;
    }
    sums.fill(0);
  }

  /** Adds the corners of a row, summed from the left, to the sums of the columns. */
  private sumRow(y: number): void {
    const { width, corners, sums } = this;
    let weight = 0;
    let red = 0;
    let green = 0;
    let blue = 0;
    let at = y * (width + 1) * CHANNELS;
    for (let i = 0; i < width * CHANNELS; i += CHANNELS, at += CHANNELS) {
      weight += corners[at];
      red += corners[at + 1];
      green += corners[at + 2];
      blue += corners[at + 3];
      sums[i] += weight;
      sums[i + 1] += red;
      sums[i + 2] += green;
      sums[i + 3] += blue;
    }
    corners.fill(0, y * (width + 1) * CHANNELS, (y + 1) * (width + 1) * CHANNELS);
  }
}

function blendRow(pixels: Uint32Array, start: number, sums: Int32Array, width: number): void {
  for (let x = 0; x < width; x++) {
    const weight = sums[x * CHANNELS];
    if (weight <= 0) continue;
    const share = LEAST_SHARE + (1 - LEAST_SHARE) * Math.min(weight / FULL, 1);
    const under = pixels[start + x];
    const red = mix(under & 255, sums[x * CHANNELS + 1] / weight, share);
    const green = mix((under >>> 8) & 255, sums[x * CHANNELS + 2] / weight, share);
    const blue = mix((under >>> 16) & 255, sums[x * CHANNELS + 3] / weight, share);
    pixels[start + x] = (under & 0xff000000) | (blue << 16) | (green << 8) | red;
  }
}

function mix(under: number, over: number, share: number): number {
  return (under + (over - under) * share + 0.5) | 0;
}
