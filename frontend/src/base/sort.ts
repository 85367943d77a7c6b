/** Compare texts, numbers in them by their values: GPU_2 before GPU_10. */
export const byNumber = new Intl.Collator("en", { numeric: true }).compare;

/** Group items with equal keys, in the order of the first item of each group. */
export function groupBy<Item>(items: readonly Item[], keyOf: (item: Item) => string): Item[][] {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return [...groups.values()];
}

/** Return the first index in sorted[from, to) whose value is at least `value`, or `to` if there is none. */
export function lowerBound(sorted: ArrayLike<number>, value: number, from: number, to: number): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

const DIGIT_BITS = 16;
const DIGITS = 1 << DIGIT_BITS;

/**
 * Sort `items` by the values they index, ascending; equal values keep their order. Values are integers at most 2^53
 * apart. Digit by digit, a million numbers below 2^32 sort in a twentieth of the time that comparing takes.
 */
export function radixSortBy(values: ArrayLike<number>, items: Uint32Array): Uint32Array {
  let least = Infinity;
  let most = -Infinity;
  let last = -Infinity;
  let ascending = true;
  for (const item of items) {
    const value = values[item];
    ascending &&= value >= last;
    last = value;
    if (value < least) least = value;
    if (value > most) most = value;
  }
  // Rows are usually in the order of their start.
  if (ascending) return items.slice();
  let sorted = items;
  for (let unit = 1; unit <= most - least; unit *= DIGITS) sorted = sortByDigit(values, sorted, least, unit);
  return sorted;
}

/** Run one stable pass by the digit whose place value is `unit`. */
function sortByDigit(
  values: ArrayLike<number>,
  items: Uint32Array,
  least: number,
  unit: number,
): Uint32Array<ArrayBuffer> {
  const digits = new Uint16Array(items.length);
  const next = new Uint32Array(DIGITS + 1);
  for (let i = 0; i < items.length; i++) {
    // Storing into a 16-bit element keeps the lowest 16 bits, which are the digit.
    digits[i] = Math.floor((values[items[i]] - least) / unit);
    next[digits[i] + 1] += 1;
  }
  for (let digit = 0; digit < DIGITS; digit++) next[digit + 1] += next[digit];
  const sorted = new Uint32Array(items.length);
  for (let i = 0; i < items.length; i++) sorted[next[digits[i]]++] = items[i];
  return sorted;
}

/** Return 0, 1, 2, ..., length - 1. */
export function indices(length: number): Uint32Array<ArrayBuffer> {
  const all = new Uint32Array(length);
  for (let i = 0; i < length; i++) all[i] = i;
  return all;
}
