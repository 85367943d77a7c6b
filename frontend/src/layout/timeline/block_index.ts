import { lowerBound } from "../../base/binary_search";
import { indices, radixSortBy } from "../../base/radix_sort";
import type { Span } from "../axis/span";
import { type Blocks, emptyBlocks } from "./blocks";

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
  const { length, start, end } = blocks;
  const lives = new Uint8Array(length);
  const first = new Int32Array(CLASSES + 1);
  for (let i = 0; i < length; i++) {
    lives[i] = lengthClass(end[i] - start[i]);
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
