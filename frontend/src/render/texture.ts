/** Weight of a block that covers the whole of a pixel. */
export const FULL = 1024;

/** A pixel that anything touches takes at least this share of its colour, so that nothing is ever shown as nothing. */
const LEAST_SHARE = 0.35;

/** Channels per pixel: weight, and red, green, blue times weight. */
const CHANNELS = 4;

/** A block of up to this many rows is added row by row, a higher one by its corners. */
const FEW = 4;

/** What is kept of a pixel under each weight below FULL, and the share of the sums that comes over it. */
const KEPT = new Float64Array(FULL + 1);
const GAINED = new Float64Array(FULL + 1);
for (let weight = 1; weight <= FULL; weight++) {
  const share = LEAST_SHARE + (1 - LEAST_SHARE) * (weight / FULL);
  KEPT[weight] = 1 - share;
  GAINED[weight] = share / weight;
}

/**
 * Blocks too small to be drawn one by one, added up: each pixel takes the mean colour of what lies in it, the stronger
 * the more of it is covered.
 *
 * A block in one row of pixels writes only a step up where it begins and one down where it ends; summing up the row
 * afterwards gives every pixel the sum over the blocks that cover it. A high one writes the four corners of its
 * rectangle, which are summed up along both axes. So a block costs the same whatever its area. The sums are whole
 * numbers, where what one step adds another takes away exactly: no trace is left where there is no block. They wrap
 * where 8000 blocks all cover the whole of a pixel.
 */
export class Texture {
  private width = 0;
  private height = 0;
  /** One column more than the picture, and for corners one row more, for ends at its far edges. */
  private steps = new Int32Array(0);
  private corners = new Int32Array(0);
  /** Columns that steps of a row lie in; the last is below the first where there are none. */
  private first = new Int32Array(0);
  private last = new Int32Array(0);
  /** Whether a row has corners, and how many high blocks open less how many close there. */
  private cornered = new Uint8Array(0);
  private opened = new Int32Array(0);
  /** Sums of the corners in this row and above, one per column. */
  private sums = new Int32Array(0);

  /** Makes room for a picture of width x height pixels. */
  resize(width: number, height: number): void {
    if (width === this.width && height === this.height) return;
    this.width = width;
    this.height = height;
    this.steps = new Int32Array((width + 1) * height * CHANNELS);
    this.corners = new Int32Array((width + 1) * (height + 1) * CHANNELS);
    this.first = new Int32Array(height).fill(width);
    this.last = new Int32Array(height).fill(-1);
    this.cornered = new Uint8Array(height + 1);
    this.opened = new Int32Array(height + 1);
    this.sums = new Int32Array(width * CHANNELS);
  }

  /** Adds a block over whole pixels [left, right) x [top, bottom) of the picture. */
  add(left: number, top: number, right: number, bottom: number, weight: number, colour: number): void {
    const red = weight * (colour & 255);
    const green = weight * ((colour >>> 8) & 255);
    const blue = weight * ((colour >>> 16) & 255);
    const row = (this.width + 1) * CHANNELS;
    if (bottom - top <= FEW) {
      for (let y = top; y < bottom; y++) {
        step(this.steps, y * row + left * CHANNELS, weight, red, green, blue);
        step(this.steps, y * row + right * CHANNELS, 0 - weight, 0 - red, 0 - green, 0 - blue);
        if (left < this.first[y]) this.first[y] = left;
        if (right > this.last[y]) this.last[y] = right;
      }
      return;
    }
    step(this.corners, top * row + left * CHANNELS, weight, red, green, blue);
    step(this.corners, top * row + right * CHANNELS, 0 - weight, 0 - red, 0 - green, 0 - blue);
    step(this.corners, bottom * row + left * CHANNELS, 0 - weight, 0 - red, 0 - green, 0 - blue);
    step(this.corners, bottom * row + right * CHANNELS, weight, red, green, blue);
    this.opened[top] += 1;
    this.opened[bottom] -= 1;
    this.cornered[top] = this.cornered[bottom] = 1;
  }

  /** Blends what was added over `pixels` and forgets it. */
  blendInto(pixels: Uint32Array): void {
    const { width, height, sums, first, last, cornered, opened } = this;
    let open = 0;
    for (let y = 0; y < height; y++) {
      open += opened[y];
      if (cornered[y] !== 0) this.sumCorners(y);
      if (open > 0) this.blendRow(pixels, y, 0, width);
      else if (first[y] < last[y]) this.blendRow(pixels, y, first[y], last[y]);
      first[y] = width;
      last[y] = -1;
    }
    const row = (width + 1) * CHANNELS;
    this.corners.fill(0, height * row, (height + 1) * row);
    sums.fill(0);
    opened.fill(0);
    cornered.fill(0);
  }

  /** Adds the corners of a row, summed from the left, to the sums of the columns, and clears them. */
  private sumCorners(y: number): void {
    const { width, corners, sums } = this;
    const start = y * (width + 1) * CHANNELS;
    const running = [0, 0, 0, 0];
    for (let i = 0; i < width * CHANNELS; i++) sums[i] += running[i % CHANNELS] += corners[start + i];
    corners.fill(0, start, start + (width + 1) * CHANNELS);
  }

  /** Sums up the steps of a row from one column to another, and blends them and the sums of the columns over it. */
  private blendRow(pixels: Uint32Array, y: number, from: number, to: number): void {
    const { width, steps, sums } = this;
    const start = y * (width + 1) * CHANNELS;
    let weight = 0;
    let red = 0;
    let green = 0;
    let blue = 0;
    for (let x = from; x < to; x++) {
      const i = x * CHANNELS;
      const at = start + i;
      weight += steps[at];
      red += steps[at + 1];
      green += steps[at + 2];
      blue += steps[at + 3];
      const total = weight + sums[i];
      if (total <= 0) continue;
      const kept = total < FULL ? KEPT[total] : 0;
      const gained = total < FULL ? GAINED[total] : 1 / total;
      const under = pixels[y * width + x];
      const r = ((under & 255) * kept + (red + sums[i + 1]) * gained + 0.5) | 0;
      const g = (((under >>> 8) & 255) * kept + (green + sums[i + 2]) * gained + 0.5) | 0;
      const b = (((under >>> 16) & 255) * kept + (blue + sums[i + 3]) * gained + 0.5) | 0;
      pixels[y * width + x] = (under & 0xff000000) | (b << 16) | (g << 8) | r;
    }
    steps.fill(0, start + from * CHANNELS, start + (to + 1) * CHANNELS);
  }
}

function step(at: Int32Array, i: number, weight: number, red: number, green: number, blue: number): void {
  at[i] += weight;
  at[i + 1] += red;
  at[i + 2] += green;
  at[i + 3] += blue;
}
