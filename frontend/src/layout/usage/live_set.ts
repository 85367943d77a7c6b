import type { Program } from "../../payload/recording/recording";
import type { Rows } from "../../payload/recording/rows";

/** Return the rows live at a position that count towards the live bytes, in row order. */
export function liveAt(rows: Rows, position: number): Uint32Array {
  return liveBetween(rows, position, position);
}

/** Return the rows that count towards the live bytes at any position from `first` to `last`, in row order. */
export function liveBetween(rows: Rows, first: number, last: number): Uint32Array {
  return select(rows, first, last, (row) => rows.charge[row] > 0);
}

/** Return the most bytes that some rows have at one of the positions from `first` to `last`. */
export function mostBetween(rows: Rows, some: Uint32Array, first: number, last: number): number {
  const change = new Float64Array(last - first + 2);
  for (const row of some) {
    change[Math.max(rows.start[row] - first, 0)] += rows.charge[row];
    change[Math.min(rows.end[row] - first, last - first + 1)] -= rows.charge[row];
  }
  let [bytes, most] = [0, 0];
  for (const by of change) most = Math.max(most, (bytes += by));
  return most;
}

/** Return the rows live at a position whose memory is charged to another row. */
export function sharersAt(rows: Rows, position: number): Uint32Array {
  return select(rows, position, position, (row) => rows.charge[row] === 0);
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

function select(rows: Rows, first: number, last: number, wanted: (row: number) => boolean): Uint32Array {
  const found = new Uint32Array(rows.length);
  let count = 0;
  for (let row = 0; row < rows.length; row++)
    if (rows.start[row] <= last && first < rows.end[row] && wanted(row)) found[count++] = row;
  return found.slice(0, count);
}
