/**
 * Blocks one over another in a stack, and the gaps below them. Gaps of about one size, within a thirty-second, are in
 * one list, and a map of bits says which lists hold any: so taking and giving back take the same few steps however
 * many gaps there are.
 */
export class GapAllocator {
  /** Where each block is, or last was; -1 where it never was. */
  readonly offset: Float64Array<ArrayBuffer>;
  /** The highest that the stack ever was. */
  height = 0;
  private readonly size: Float64Array;
  /** Neighbours in the stack, and the free bytes down to the lower one. */
  private readonly below: Int32Array;
  private readonly above: Int32Array;
  private readonly gap: Float64Array;
  /** Neighbours in the list of gaps of a size. */
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

  /** Puts a block into a gap of about the least size that holds it, or on top. */
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

  /** Takes a block out: its bytes join the gaps at either side, or the free space on top. */
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

  /** The block over such a gap, or NONE. */
  private smallest(bytes: number): number {
    const own = listOfSize(bytes);
    // In its own list a gap can be smaller or larger: a few are looked at.
    let looked = 0;
    let best = NONE;
    for (
      let over = this.first[own];
      over !== NONE && looked < MAX_CANDIDATES;
      over = this.after[over], looked++
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

/** 53 powers of two of whole bytes, 32 lists each, and one word of bits more. */
const LISTS = 54 * 32;

const number = new Float64Array(1);
const halves = new Int32Array(number.buffer);
const EXPONENT_OF_ONE = 1023 << 5;

/** The list of a size: the exponent of the number and the first five bits behind its point, as IEEE 754 stores them. */
function listOfSize(bytes: number): number {
  number[0] = Math.max(bytes, 1);
  return Math.min((halves[1] >> 15) - EXPONENT_OF_ONE, LISTS - 1);
}
