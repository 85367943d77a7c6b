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
