import type { Program } from "../../payload/recording/recording";
import type { Rows } from "../../payload/recording/rows";

/** Return the rows live at a position that count towards the live bytes, in row order. */
export function liveAt(rows: Rows, position: number): Uint32Array {
  return select(rows, position, (row) => rows.charge[row] > 0);
}

/** Return the rows live at a position whose memory is charged to another row. */
export function sharersAt(rows: Rows, position: number): Uint32Array {
  return select(rows, position, (row) => rows.charge[row] === 0);
}

/** Return the sum of charges of some rows. */
export function liveBytes(rows: Rows, live: Iterable<number>): number {
  let bytes = 0;
  for (const row of live) bytes += rows.charge[row];
  return bytes;
}

/** Return whether an allocator has a stack, that is, bytes in use that no row explains. */
export function hasStack(program: Program | null): boolean {
  return program?.unexplained?.some((bytes) => bytes !== 0) ?? false;
}

/** Return whether any charged row has a known role. */
export function hasRoles(rows: Rows): boolean {
  return rows.role.some((role, row) => role !== 0 && rows.charge[row] > 0);
}

/** Return bytes by role number over some rows, largest first. */
export function bytesByRole(rows: Rows, live: Iterable<number>): Map<number, number> {
  const bytes = new Map<number, number>();
  for (const row of live) bytes.set(rows.role[row], (bytes.get(rows.role[row]) ?? 0) + rows.charge[row]);
  return new Map([...bytes].sort((a, b) => b[1] - a[1]));
}

/** Return the bytes at each position of the rows that have a 1 in `only`. */
export function bytesOver(rows: Rows, length: number, only: Uint8Array): Float64Array {
  const bytes = new Float64Array(length + 1);
  for (let row = 0; row < rows.length; row++) {
    if (only[row] === 0) continue;
    bytes[Math.max(rows.start[row], 0)] += rows.charge[row];
    bytes[Math.min(rows.end[row], length)] -= rows.charge[row];
  }
  for (let position = 1; position < length; position++) bytes[position] += bytes[position - 1];
  return bytes.subarray(0, length);
}

function select(rows: Rows, position: number, wanted: (row: number) => boolean): Uint32Array {
  const found = new Uint32Array(rows.length);
  let count = 0;
  for (let row = 0; row < rows.length; row++)
    if (rows.start[row] <= position && position < rows.end[row] && wanted(row)) found[count++] = row;
  return found.slice(0, count);
}

export type BarOrder = "program" | "size" | "padding";

/** Buffers side by side in one bar. Buffer i spans edges[i] to edges[i + 1], in bytes. */
export interface BufferBar {
  rows: Uint32Array;
  edges: Float64Array;
}

/** A filled segment of the bar in pixels; `row` is its buffer, or -1 if several buffers share it. */
interface BarSegment {
  x: number;
  width: number;
  color: number;
  row: number;
}

/** Return the bytes that a buffer contributes: its charge, or its padding in the bar by padding. */
function barWeight(rows: Rows, row: number, order: BarOrder): number {
  return order === "padding" ? Math.max(rows.charge[row] - rows.requested[row], 0) : rows.charge[row];
}

/** Order buffers for a bar. Buffers with no weight are left out. */
export function bufferBar(rows: Rows, live: Uint32Array, order: BarOrder): BufferBar {
  const kept = live.filter((row) => barWeight(rows, row, order) > 0);
  if (order === "program") kept.sort((a, b) => rows.defined[a] - rows.defined[b] || a - b);
  else kept.sort((a, b) => barWeight(rows, b, order) - barWeight(rows, a, order) || a - b);
  const edges = new Float64Array(kept.length + 1);
  kept.forEach((row, i) => {
    edges[i + 1] = edges[i] + barWeight(rows, row, order);
  });
  return { rows: kept, edges };
}

/** Return the index in the bar of the buffer that contains byte `at`, or -1 outside the bar. */
export function bufferAt({ edges, rows }: BufferBar, at: number): number {
  if (at < 0 || rows.length === 0 || at >= edges[rows.length]) return -1;
  let low = 0;
  let high = rows.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (edges[middle] <= at) low = middle;
    else high = middle;
  }
  return low;
}

/**
 * Return the bar's segments, at most two for each pixel. A buffer at least a pixel wide has its own segment.
 * Narrower buffers are gathered until they fill a pixel, which takes the color with the most bytes. The cost
 * depends on the number of pixels, even for 100,000 buffers.
 */
export function barSegments(bar: BufferBar, rows: Rows, width: number): BarSegment[] {
  const total = bar.edges[bar.rows.length];
  if (!(total > 0)) return [];
  const scale = width / total;
  const drawn: BarSegment[] = [];
  const gathered = new Map<number, number>();
  let from = 0;
  const flush = (to: number): void => {
    if (gathered.size === 0) return;
    const [color] = [...gathered].reduce((most, next) => (next[1] > most[1] ? next : most));
    drawn.push({ x: from, width: to - from, color, row: -1 });
    gathered.clear();
  };
  bar.rows.forEach((row, i) => {
    const x = bar.edges[i] * scale;
    const end = bar.edges[i + 1] * scale;
    if (end - x >= 1) {
      flush(x);
      drawn.push({ x, width: end - x, color: rows.color[row], row });
      return;
    }
    if (gathered.size === 0) from = x;
    gathered.set(rows.color[row], (gathered.get(rows.color[row]) ?? 0) + end - x);
    if (end - from >= 1) flush(end);
  });
  flush(width);
  return drawn;
}
