import type { Blocks, Span } from "./timeline_blocks";
import { emptyBlocks } from "./timeline_blocks";

/**
 * Blocks ordered so that a window is found without looking at the rest: class k holds the lives whose length has k
 * leading zero bits, that is 2^(31-k) positions or more and fewer than 2^(32-k), sorted by start. What covers a window
 * [a, b) starts in (a - 2^(32-k), b), which is one run of the class. Longest lives first: drawn in this order, no
 * short life is hidden behind a long one.
 */
export interface TimelineIndex {
  blocks: Blocks;
  /** Class k is blocks [first[k], first[k + 1]). */
  first: Int32Array;
}

const CLASSES = 32;

const classOf = (life: number): number => Math.clz32(life);

/** Sorts by class, then start, then row: two stable counting passes, since starts are small whole numbers. */
export function buildIndex(blocks: Blocks): TimelineIndex {
  const { length, start, end } = blocks;
  let last = 0;
  for (let i = 0; i < length; i++) last = Math.max(last, start[i]);
  const byStart = countingSort(length, last + 1, (i) => start[i], null);
  const order = countingSort(length, CLASSES, (i) => classOf(end[i] - start[i]), byStart);
  const first = new Int32Array(CLASSES + 1);
  for (let i = 0; i < length; i++) first[classOf(end[i] - start[i]) + 1] += 1;
  for (let k = 0; k < CLASSES; k++) first[k + 1] += first[k];
  return { blocks: reorder(blocks, order), first };
}

function countingSort(
  length: number,
  keys: number,
  keyOf: (item: number) => number,
  order: Int32Array | null,
): Int32Array {
  const next = new Int32Array(keys + 1);
  for (let i = 0; i < length; i++) next[keyOf(i) + 1] += 1;
  for (let key = 0; key < keys; key++) next[key + 1] += next[key];
  const sorted = new Int32Array(length);
  for (let i = 0; i < length; i++) {
    const item = order === null ? i : order[i];
    sorted[next[keyOf(item)]++] = item;
  }
  return sorted;
}

function reorder(blocks: Blocks, order: Int32Array): Blocks {
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

/** Calls `visit(from, to)` with the run of each class that may reach into the window, longest lives first. */
export function visitRuns(
  index: TimelineIndex,
  window: Span,
  visit: (from: number, to: number) => void,
): void {
  const { blocks, first } = index;
  for (let k = 0; k < CLASSES; k++) {
    if (first[k] === first[k + 1]) continue;
    // Lives of class k are shorter than 2^(32 - k), so what starts before this has ended by the window.
    const reach = 2 ** (32 - k);
    const from = lowerBound(blocks.start, window[0] - reach, first[k], first[k + 1]);
    const to = lowerBound(blocks.start, window[1], from, first[k + 1]);
    if (from < to) visit(from, to);
  }
}

/** First place in sorted[from, to) whose value is not below `value`; `to` where all are. */
export function lowerBound(sorted: Int32Array, value: number, from: number, to: number): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
