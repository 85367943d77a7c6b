import { RESERVED } from "../../base/colors";
import { indices, lowerBound, radixSortBy } from "../../base/sort";
import type { Regions, Rows } from "../../payload/recording/rows";
import type { Axis, Span, TimelineBox, View } from "../axis";

/**
 * Blocks of a timeline as columns. Block i covers values [start, end) of the x axis and bytes [bottom, top)
 * of the stacked regions.
 */
export interface Blocks {
  length: number;
  start: Float64Array;
  end: Float64Array;
  bottom: Float64Array;
  top: Float64Array;
  color: Uint8Array;
  row: Int32Array;
}

export function emptyBlocks(capacity: number): Blocks {
  return {
    length: 0,
    start: new Float64Array(capacity),
    end: new Float64Array(capacity),
    bottom: new Float64Array(capacity),
    top: new Float64Array(capacity),
    color: new Uint8Array(capacity),
    row: new Int32Array(capacity),
  };
}

export type ShownRegions = "temp" | "all";

function isShown(regions: Regions, region: number, show: ShownRegions): boolean {
  return region >= 0 && region < regions.length && (show === "all" || regions.temporary[region] !== 0);
}

/**
 * Return a row's box on an axis of `length` positions: its lifetime, both ends included, clipped to the axis.
 * A row entirely outside the axis gets the nearest position, so that every buffer has a block.
 */
export function rowBox(rows: Rows, regions: Regions, row: number, length: number): TimelineBox {
  const start = Math.min(Math.max(rows.defined[row], 0), Math.max(length - 1, 0));
  const bottom = regions.base[rows.region[row]] + rows.offset[row];
  return {
    start,
    end: Math.max(start + 1, Math.min(rows.last_used[row] + 1, length)),
    bottom,
    top: bottom + rows.size[row],
  };
}

/** Convert a box from positions to values of an axis. */
export function boxOnAxis(axis: Axis, box: TimelineBox): TimelineBox {
  return { ...box, start: axis.at(box.start), end: axis.at(box.end) };
}

/** Return whether a row has a block: it has bytes and a known place in a visible region. */
export function hasBlock(rows: Rows, regions: Regions, row: number, show: ShownRegions): boolean {
  return rows.size[row] > 0 && rows.offset[row] >= 0 && isShown(regions, rows.region[row], show);
}

/**
 * Return one block for each row with bytes in a visible region; `clock` as in Axis. With `reserved`, also blocks for
 * the time in which the memory of a row counts as live, before the row is written and after its last use.
 */
export function timelineBlocks(
  rows: Rows,
  regions: Regions,
  length: number,
  show: ShownRegions,
  clock: Float64Array | null = null,
  reserved = false,
): Blocks {
  const blocks = emptyBlocks(rows.length * (reserved ? 3 : 1));
  const last = Math.max(length - 1, 0);
  let count = 0;
  const append = (row: number, start: number, end: number, color: number): void => {
    const bottom = regions.base[rows.region[row]] + rows.offset[row];
    blocks.start[count] = clock === null ? start : clock[start];
    blocks.end[count] = clock === null ? end : clock[end];
    blocks.bottom[count] = bottom;
    blocks.top[count] = bottom + rows.size[row];
    blocks.color[count] = color;
    blocks.row[count] = row;
    count += 1;
  };
  for (let row = 0; row < rows.length; row++) {
    if (!hasBlock(rows, regions, row, show)) continue;
    const start = Math.min(Math.max(rows.defined[row], 0), last);
    const end = Math.max(start + 1, Math.min(rows.last_used[row] + 1, length));
    append(row, start, end, rows.color[row]);
    if (!reserved || rows.charge[row] === 0) continue;
    const [from, to] = [Math.max(rows.start[row], 0), Math.min(rows.end[row], length)];
    if (from < start) append(row, from, start, RESERVED + rows.color[row]);
    if (end < to) append(row, end, to, RESERVED + rows.color[row]);
  }
  blocks.length = count;
  return blocks;
}

/** Return the full extent: the whole axis and the bytes of the visible regions. */
export function timelineExtent(regions: Regions, axis: Axis, show: ShownRegions): View {
  let top = 0;
  for (let region = 0; region < regions.length; region++)
    if (isShown(regions, region, show)) top = Math.max(top, regions.base[region] + regions.size[region]);
  return { x: axis.extent, y: [0, Math.max(top, 1)] };
}

/** Return bottom and top of each visible region in bytes, in pairs. */
export function regionBands(regions: Regions, show: ShownRegions): Float64Array {
  const bands: number[] = [];
  for (let region = 0; region < regions.length; region++)
    if (isShown(regions, region, show) && regions.size[region] > 0)
      bands.push(regions.base[region], regions.base[region] + regions.size[region]);
  return Float64Array.from(bands);
}

/**
 * Blocks ordered for fast window queries. Class k contains the lifetimes of length 2^(63-k) up to, not
 * including, 2^(64-k), that is with k leading zero bits of 64, sorted by start. Blocks that overlap a window
 * [a, b) start in (a - 2^(64-k), b), which is one run of the class. Long lifetimes come first and are drawn
 * first, so they do not hide short ones.
 */
export interface TimelineIndex {
  blocks: Blocks;
  /** Class k is blocks [first[k], first[k + 1]). */
  first: Int32Array;
}

const CLASSES = 65;

const lengthClass = (life: number): number =>
  life < 2 ** 32 ? 32 + Math.clz32(life) : Math.clz32(Math.floor(life / 2 ** 32));

/** Sort blocks by class, then by start; equal blocks keep their order. */
export function indexBlocks(blocks: Blocks): TimelineIndex {
  const { length, start, end, color } = blocks;
  const lives = new Uint8Array(length);
  const first = new Int32Array(CLASSES + 1);
  for (let i = 0; i < length; i++) {
    // Reserved memory is drawn first: others that share it are written meanwhile.
    lives[i] = color[i] >= RESERVED ? 0 : lengthClass(end[i] - start[i]);
    first[lives[i] + 1] += 1;
  }
  for (let k = 0; k < CLASSES; k++) first[k + 1] += first[k];
  const order = radixSortBy(lives, radixSortBy(start, indices(length)));
  return { blocks: reorder(blocks, order), first };
}

function reorder(blocks: Blocks, order: Uint32Array): Blocks {
  const sorted = emptyBlocks(order.length);
  sorted.length = order.length;
  for (let i = 0; i < order.length; i++) {
    const from = order[i];
    sorted.start[i] = blocks.start[from];
    sorted.end[i] = blocks.end[from];
    sorted.bottom[i] = blocks.bottom[from];
    sorted.top[i] = blocks.top[from];
    sorted.color[i] = blocks.color[from];
    sorted.row[i] = blocks.row[from];
  }
  return sorted;
}

/**
 * Call `visit(from, to)` with the run of each class that may overlap the window, longest lifetimes first.
 * Classes shorter than `least` are skipped.
 */
export function visitRuns(
  index: TimelineIndex,
  window: Span,
  visit: (from: number, to: number) => void,
  least = 0,
): void {
  const { blocks, first } = index;
  for (let k = 0; k < CLASSES; k++) {
    // Lifetimes of class k are shorter than this, so blocks that start earlier than that have ended.
    const reach = 2 ** (64 - k);
    if (reach <= least) return;
    if (first[k] === first[k + 1]) continue;
    const from = lowerBound(blocks.start, window[0] - reach, first[k], first[k + 1]);
    const to = lowerBound(blocks.start, window[1], from, first[k + 1]);
    if (from < to) visit(from, to);
  }
}

/** Return an upper bound of the number of blocks that overlap the window. */
export function countInWindow(index: TimelineIndex, window: Span): number {
  let count = 0;
  visitRuns(index, window, (from, to) => {
    count += to - from;
  });
  return count;
}
