/** Return the first index in sorted[from, to) whose value is at least `value`, or `to` if there is none. */
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
