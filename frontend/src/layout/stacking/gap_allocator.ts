/**
 * Stacked blocks and the gaps below them: a segregated-fit allocator. Gaps whose sizes differ by less than
 * 1/32 share a list, and a bitmap marks the lists that are not empty. Allocating and freeing take constant
 * time for any number of gaps.
 */
export class GapAllocator {
  /** Offset of each block, kept after it is freed; -1 if it was never allocated. */
  readonly offset: Float64Array<ArrayBuffer>;
  /** Maximum height of the stack so far. */
  height = 0;
  private readonly size: Float64Array;
  /** Neighbors in the stack, and the free bytes down to the lower one. */
  private readonly below: Int32Array;
  private readonly above: Int32Array;
  private readonly gap: Float64Array;
  /** Neighbors in the list of gaps of the same size class. */
  private readonly before: Int32Array;
  private readonly after: Int32Array;
  private readonly first = new Int32Array(LISTS).fill(NONE);
  private readonly filled = new Int32Array(LISTS / 32);
  private highest = NONE;

  constructor(blocks: number) {
    const links = (): Int32Array => new Int32Array(blocks).fill(NONE);
    this.offset = new Float64Array(blocks).fill(-1);
    this.size = new Float64Array(blocks);
    this.gap = new Float64Array(blocks);
    this.below = links();
    this.above = links();
    this.before = links();
    this.after = links();
  }

  /** Place a block in one of the smallest gaps that can contain it, or on top. */
  allocate(block: number, bytes: number): void {
    this.size[block] = bytes;
    this.gap[block] = 0;
    const over = this.smallest(bytes);
    const under = over === NONE ? this.highest : this.below[over];
    const bottom = over === NONE ? this.top() : this.offset[over] - this.gap[over];
    this.offset[block] = bottom;
    this.link(under, block);
    this.link(block, over);
    if (over === NONE) this.height = Math.max(this.height, bottom + bytes);
    else this.resize(over, this.gap[over] - bytes);
  }

  /** Remove a block. Its bytes join the gaps on both sides, or the free space on top. */
  free(block: number): void {
    const under = this.below[block];
    const over = this.above[block];
    const freed = this.gap[block] + this.size[block];
    this.resize(block, 0);
    if (over === NONE) this.highest = under;
    else this.resize(over, this.gap[over] + freed);
    if (over !== NONE) this.below[over] = under;
    if (under !== NONE) this.above[under] = over;
  }

  private top(): number {
    return this.highest === NONE ? 0 : this.offset[this.highest] + this.size[this.highest];
  }

  private link(under: number, over: number): void {
    if (over === NONE) this.highest = under;
    else this.below[over] = under;
    if (under !== NONE) this.above[under] = over;
  }

  /** Return the block above a gap of at least `bytes`, or NONE. */
  private smallest(bytes: number): number {
    const own = listOfSize(bytes);
    // Gaps in its own list can be smaller than the block, so only a few of them are tried.
    let tried = 0;
    let best = NONE;
    for (
      let over = this.first[own];
      over !== NONE && tried < MAX_CANDIDATES;
      over = this.after[over], tried++
    ) {
      const gap = this.gap[over];
      if (gap === bytes) return over;
      if (gap > bytes && (best === NONE || gap < this.gap[best])) best = over;
    }
    if (best !== NONE) return best;
    const list = this.nextFilled(own + 1);
    return list === NONE ? NONE : this.first[list];
  }

  private nextFilled(from: number): number {
    let word = from >> 5;
    let bits = this.filled[word] & (-1 << (from & 31));
    while (bits === 0) {
      word += 1;
      if (word >= this.filled.length) return NONE;
      bits = this.filled[word];
    }
    return (word << 5) + (31 - Math.clz32(bits & -bits));
  }

  private resize(over: number, gap: number): void {
    if (this.gap[over] > 0) this.unlist(over, listOfSize(this.gap[over]));
    this.gap[over] = gap;
    if (gap > 0) this.list(over, listOfSize(gap));
  }

  private list(over: number, list: number): void {
    const next = this.first[list];
    this.before[over] = NONE;
    this.after[over] = next;
    if (next !== NONE) this.before[next] = over;
    this.first[list] = over;
    this.filled[list >> 5] |= 1 << (list & 31);
  }

  private unlist(over: number, list: number): void {
    const before = this.before[over];
    const after = this.after[over];
    if (before === NONE) this.first[list] = after;
    else this.after[before] = after;
    if (after !== NONE) this.before[after] = before;
    if (this.first[list] === NONE) this.filled[list >> 5] &= ~(1 << (list & 31));
  }
}

const NONE = -1;
const MAX_CANDIDATES = 32;

/** 53 powers of two with 32 lists each, and one spare word of bits. */
const LISTS = 54 * 32;

const number = new Float64Array(1);
const halves = new Int32Array(number.buffer);
const EXPONENT_OF_ONE = 1023 << 5;

/** Return the list of a size: the exponent and the first five bits of the mantissa of its IEEE 754 representation. */
function listOfSize(bytes: number): number {
  number[0] = Math.max(bytes, 1);
  return Math.min((halves[1] >> 15) - EXPONENT_OF_ONE, LISTS - 1);
}
