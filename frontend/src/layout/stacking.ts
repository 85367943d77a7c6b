import type { Regions, Rows } from "../payload/recording";
import { TextColumn, TextDictionary } from "../payload/tables";

/** Rows with a place on the timeline's y axis, and the one region that they lie in. */
export interface Placed {
  rows: Rows;
  regions: Regions;
}

const NAMELESS = new TextDictionary(new Uint32Array(1), new Uint8Array(0));

/** One region from zero, always shown and without a name. */
function oneRegion(size: number): Regions {
  return {
    length: 1,
    kind: new TextColumn(Uint32Array.of(0), NAMELESS),
    size: Float64Array.of(size),
    base: new Float64Array(1),
    temporary: Uint8Array.of(1),
  };
}

/**
 * The rows where their addresses put them. What lies at no known address has no place. Stretches that no row ever
 * uses are cut out, as addresses can be gigabytes apart: a byte on the axis counts those that some row lies in.
 */
export function byAddress(rows: Rows, regions: Regions): Placed {
  const bottomOf = (row: number): number => regions.base[rows.region[row]] + rows.offset[row];
  const known: number[] = [];
  for (let row = 0; row < rows.length; row++)
    if (rows.offset[row] >= 0 && rows.size[row] > 0) known.push(row);
  known.sort((a, b) => bottomOf(a) - bottomOf(b));
  const offset = new Float64Array(rows.length).fill(-1);
  // `cut` bytes below here are in no row; `reached` is the highest byte so far.
  let cut = 0;
  let reached = 0;
  for (const row of known) {
    const bottom = bottomOf(row);
    if (bottom > reached) cut += bottom - reached;
    offset[row] = bottom - cut;
    reached = Math.max(reached, bottom + rows.size[row]);
  }
  return {
    rows: { ...rows, offset, region: new Int32Array(rows.length) },
    regions: oneRegion(reached - cut),
  };
}

/**
 * The rows stacked in order of their start, each in the smallest gap that holds it, else on top: the height of the
 * stack follows what is in use, whatever the addresses are. What was there before lies at the bottom.
 */
export function stacked(rows: Rows): Placed {
  const byStart = order(rows, (row) => rows.start[row]);
  const byEnd = order(rows, (row) => rows.end[row]);
  const offset = new Float64Array(rows.length).fill(-1);
  const gaps = new Gaps();
  let freed = 0;
  for (const row of byStart) {
    while (freed < byEnd.length && rows.end[byEnd[freed]] <= rows.start[row]) {
      const gone = byEnd[freed++];
      if (offset[gone] >= 0) gaps.give(offset[gone], rows.charge[gone]);
    }
    offset[row] = gaps.take(rows.charge[row]);
  }
  return {
    rows: { ...rows, offset, size: rows.charge, region: new Int32Array(rows.length) },
    regions: oneRegion(gaps.height),
  };
}

/** Numbers of the rows that are charged for anything, ordered by a value; equal ones by row. */
function order(rows: Rows, valueOf: (row: number) => number): number[] {
  const charged: number[] = [];
  for (let row = 0; row < rows.length; row++) if (rows.charge[row] > 0) charged.push(row);
  return charged.sort((a, b) => valueOf(a) - valueOf(b) || a - b);
}

interface Gap {
  from: number;
  size: number;
}

/** Free stretches below the top of a stack, which never touch one another. */
class Gaps {
  /** By size, equal ones by place. */
  private readonly sorted: Gap[] = [];
  private readonly startingAt = new Map<number, Gap>();
  private readonly endingAt = new Map<number, Gap>();
  private top = 0;
  /** The highest that the stack ever was. */
  height = 0;

  /** Takes the smallest stretch that is long enough, or the top. */
  take(bytes: number): number {
    const at = this.place({ from: -1, size: bytes });
    if (at === this.sorted.length) {
      this.top += bytes;
      this.height = Math.max(this.height, this.top);
      return this.top - bytes;
    }
    const { from, size } = this.sorted[at];
    this.remove(this.sorted[at]);
    if (size > bytes) this.add({ from: from + bytes, size: size - bytes });
    return from;
  }

  give(offset: number, bytes: number): void {
    const before = this.endingAt.get(offset);
    const after = this.startingAt.get(offset + bytes);
    if (before !== undefined) this.remove(before);
    if (after !== undefined) this.remove(after);
    const from = before?.from ?? offset;
    const size = (before?.size ?? 0) + bytes + (after?.size ?? 0);
    if (from + size === this.top) this.top = from;
    else this.add({ from, size });
  }

  private add(gap: Gap): void {
    this.sorted.splice(this.place(gap), 0, gap);
    this.startingAt.set(gap.from, gap);
    this.endingAt.set(gap.from + gap.size, gap);
  }

  private remove(gap: Gap): void {
    this.sorted.splice(this.place(gap), 1);
    this.startingAt.delete(gap.from);
    this.endingAt.delete(gap.from + gap.size);
  }

  /** Where a gap is in their order, or would be. */
  private place({ from, size }: Gap): number {
    let low = 0;
    let high = this.sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = this.sorted[middle];
      if (other.size < size || (other.size === size && other.from < from)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
