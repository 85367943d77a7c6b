/** Weight of a block that covers a whole pixel. */
export const FULL_WEIGHT = 1024;

/** Minimum share of color in a touched pixel, so that every block is visible. */
const MIN_SHARE = 0.35;

/**
 * Share of the background that remains under each weight up to FULL_WEIGHT, and the factor for the sums
 * blended over it.
 */
const BACKGROUND_SHARE = new Float64Array(FULL_WEIGHT + 1);
const WEIGHT_FACTOR = new Float64Array(FULL_WEIGHT + 1);
for (let weight = 1; weight <= FULL_WEIGHT; weight++) {
  const share = MIN_SHARE + (1 - MIN_SHARE) * (weight / FULL_WEIGHT);
  BACKGROUND_SHARE[weight] = 1 - share;
  WEIGHT_FACTOR[weight] = share / weight;
}

/** Values for each pixel of a row: weight, and red, green and blue times weight. */
const CHANNELS = 4;

/** A note packs left and right into 16 bits each, and a color number above the 12 bits of a weight. */
const SIDE_BITS = 16;
const SIDE = 0xffff;
const WEIGHT_BITS = 12;
const WEIGHT = 0xfff;

/** Instead of a right side: start or end of a column. No picture is that wide. */
const BEGINS = 0xffff;
const ENDS = 0xfffe;

/**
 * Sum of blocks too small to draw one by one. Each pixel shows the mean color of its blocks, stronger with
 * more coverage.
 *
 * Such a block is one pixel high, one pixel wide, or both. It is noted in the row where it starts, and a tall
 * block again in the row where it ends. The notes are then sorted by row. In each row, a block becomes a step
 * up at its left and a step down at its right; prefix sums give the coverage of every pixel. Columns are kept
 * in sums that continue from row to row. The cost of a block is independent of its length, and only the notes
 * and one row occupy memory. Sums are integers, so each step down cancels its step up exactly and no trace
 * remains outside blocks. Sums overflow if 8000 blocks cover the same pixel completely.
 */
export class Texture {
  private width = 0;
  private height = 0;
  private noted = 0;
  /** Notes in order of arrival: row, sides, and paint. */
  private rows = new Uint16Array(0);
  private sides = new Uint32Array(0);
  private paints = new Uint32Array(0);
  /** The same notes sorted by row; the notes of each row end at `ends`. */
  private sortedSides = new Uint32Array(0);
  private sortedPaints = new Uint32Array(0);
  private ends = new Int32Array(0);
  private steps = new Int32Array(0);
  private columns = new Int32Array(0);

  /** Allocate room for this many blocks on a picture of width x height pixels. */
  resize(width: number, height: number, blocks: number): void {
    if (width !== this.width || height !== this.height) {
      this.width = width;
      this.height = height;
      this.ends = new Int32Array(height + 1);
      // One extra element for steps down at the end of the row.
      this.steps = new Int32Array((width + 1) * CHANNELS);
      this.columns = new Int32Array(width * CHANNELS);
    }
    const notes = blocks * 2;
    if (this.rows.length >= notes) return;
    this.rows = new Uint16Array(notes);
    this.sides = new Uint32Array(notes);
    this.paints = new Uint32Array(notes);
    this.sortedSides = new Uint32Array(notes);
    this.sortedPaints = new Uint32Array(notes);
  }

  /** Add a block that covers pixels [left, right) of one row. */
  addRun(left: number, right: number, row: number, weight: number, color: number): void {
    this.note(row, left, right, weight, color);
  }

  /** Add a block that covers pixels [top, bottom) of one column. */
  addColumn(column: number, top: number, bottom: number, weight: number, color: number): void {
    this.note(top, column, BEGINS, weight, color);
    if (bottom < this.height) this.note(bottom, column, ENDS, weight, color);
  }

  private note(row: number, left: number, right: number, weight: number, color: number): void {
    this.rows[this.noted] = row;
    this.sides[this.noted] = (right << SIDE_BITS) | left;
    this.paints[this.noted] = (color << WEIGHT_BITS) | weight;
    this.noted += 1;
    this.ends[row + 1] += 1;
  }

  /** Blend the added blocks over `pixels`, with colors by number, and clear them. */
  blendInto(pixels: Uint32Array, colors: Uint32Array): void {
    if (this.noted === 0) return;
    this.sort();
    const { width, height, sortedSides, sortedPaints, ends, steps, columns } = this;
    let open = 0;
    let note = 0;
    for (let y = 0; y < height; y++) {
      let first = width;
      let last = 0;
      for (; note < ends[y]; note++) {
        const left = sortedSides[note] & SIDE;
        const right = sortedSides[note] >>> SIDE_BITS;
        const weight = sortedPaints[note] & WEIGHT;
        const color = colors[sortedPaints[note] >>> WEIGHT_BITS];
        if (right < ENDS) {
          step(steps, left, weight, color);
          step(steps, right, 0 - weight, color);
          if (left < first) first = left;
          if (right > last) last = right;
        } else {
          open += right === BEGINS ? 1 : -1;
          step(columns, left, right === BEGINS ? weight : 0 - weight, color);
        }
      }
      if (open > 0) this.blendRow(pixels, y * width, 0, width);
      else if (first < last) this.blendRow(pixels, y * width, first, last);
    }
    columns.fill(0);
    ends.fill(0);
    this.noted = 0;
  }

  /** Sort the notes by row. Counting sort writes each note once; linked lists would wait for memory. */
  private sort(): void {
    const { noted, rows, sides, paints, sortedSides, sortedPaints, ends } = this;
    for (let row = 1; row < ends.length; row++) ends[row] += ends[row - 1];
    for (let note = 0; note < noted; note++) {
      const place = ends[rows[note]]++;
      sortedSides[place] = sides[note];
      sortedPaints[place] = paints[note];
    }
  }

  /** Sum up the steps between two columns, blend them and the column sums over the row, and clear the steps. */
  private blendRow(pixels: Uint32Array, row: number, from: number, to: number): void {
    const { steps, columns } = this;
    let weight = 0;
    let red = 0;
    let green = 0;
    let blue = 0;
    for (let x = from; x < to; x++) {
      const at = x * CHANNELS;
      weight += steps[at];
      red += steps[at + 1];
      green += steps[at + 2];
      blue += steps[at + 3];
      const total = weight + columns[at];
      if (total <= 0) continue;
      const kept = total < FULL_WEIGHT ? BACKGROUND_SHARE[total] : 0;
      const gained = total < FULL_WEIGHT ? WEIGHT_FACTOR[total] : 1 / total;
      const under = pixels[row + x];
      const r = ((under & 255) * kept + (red + columns[at + 1]) * gained + 0.5) | 0;
      const g = (((under >>> 8) & 255) * kept + (green + columns[at + 2]) * gained + 0.5) | 0;
      const b = (((under >>> 16) & 255) * kept + (blue + columns[at + 3]) * gained + 0.5) | 0;
      pixels[row + x] = (under & 0xff000000) | (b << 16) | (g << 8) | r;
    }
    steps.fill(0, from * CHANNELS, (to + 1) * CHANNELS);
  }
}

function step(sums: Int32Array, x: number, weight: number, color: number): void {
  const at = x * CHANNELS;
  sums[at] += weight;
  sums[at + 1] += weight * (color & 255);
  sums[at + 2] += weight * ((color >>> 8) & 255);
  sums[at + 3] += weight * ((color >>> 16) & 255);
}
