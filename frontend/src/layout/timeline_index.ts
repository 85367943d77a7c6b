import type { Blocks, Span } from "./timeline_blocks";
import { indices, sortedBy } from "./radix";
import { emptyBlocks } from "./timeline_blocks";

/**
 * Blocks ordered so that a window is found without looking at the rest: class k holds the lives whose length has k
 * leading zero bits of 64, that is from 2^(63-k) to just below 2^(64-k), sorted by start. What covers a window [a, b)
 * starts in (a - 2^(64-k), b), which is one run of the class. Longest lives first: drawn in this order, no short life
 * is hidden behind a long one.
 */
export interface TimelineIndex {
  blocks: Blocks;
  /** Class k is blocks [first[k], first[k + 1]). */
  first: Int32Array;
}

const CLASSES = 65;

const classOf = (life: number): number =>
  life < 2 ** 32 ? 32 + Math.clz32(life) : Math.clz32(Math.floor(life / 2 ** 32));

/** Sorts by class, then start, then the order given. */
export function buildIndex(blocks: Blocks): TimelineIndex {
  const { length, start, end } = blocks;
  const lives = new Uint8Array(length);
  const first = new Int32Array(CLASSES + 1);
  for (let i = 0; i < length; i++) {
    lives[i] = classOf(end[i] - start[i]);
    first[lives[i] + 1] += 1;
  }
  for (let k = 0; k < CLASSES; k++) first[k + 1] += first[k];
  const order = sortedBy(lives, sortedBy(start, indices(length)));
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
    sorted.role[i] = blocks.role[from];
    sorted.row[i] = blocks.row[from];
  }
  return sorted;
}

/**
 * Calls `visit(from, to)` with the run of each class that may reach into the window, longest lives first, and of lives
 * that may be as long as `least` only.
 */
export function visitRuns(
  index: TimelineIndex,
  window: Span,
  visit: (from: number, to: number) => void,
  least = 0,
): void {
  const { blocks, first } = index;
  for (let k = 0; k < CLASSES; k++) {
    // Lives of class k are shorter than this: what starts so long before the window has ended by then.
    const reach = 2 ** (64 - k);
    if (reach <= least) return;
    if (first[k] === first[k + 1]) continue;
    const from = lowerBound(blocks.start, window[0] - reach, first[k], first[k + 1]);
    const to = lowerBound(blocks.start, window[1], from, first[k + 1]);
    if (from < to) visit(from, to);
  }
}

/** No fewer blocks than reach into the window. */
export function countIn(index: TimelineIndex, window: Span): number {
  let count = 0;
  visitRuns(index, window, (from, to) => {
    count += to - from;
  });
  return count;
}

/** First place in sorted[from, to) whose value is not below `value`; `to` where all are. */
export function lowerBound(sorted: Float64Array, value: number, from: number, to: number): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
