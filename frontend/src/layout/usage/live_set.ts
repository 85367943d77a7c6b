import type { Program } from "../../payload/recording/program";
import type { Rows } from "../../payload/recording/rows";

/** Indices of the rows live at a position that add to the live bytes there, in row order. */
export function liveAt(rows: Rows, position: number): Uint32Array {
  return select(rows, position, (row) => rows.charge[row] > 0);
}

/** Indices of the rows live at a position inside memory that another row is charged for. */
export function sharersAt(rows: Rows, position: number): Uint32Array {
  return select(rows, position, (row) => rows.charge[row] === 0);
}

/** Bytes live at a position. */
export function liveBytes(rows: Rows, live: Uint32Array): number {
  let bytes = 0;
  for (const row of live) bytes += rows.charge[row];
  return bytes;
}

/** Whether an allocator has bytes in use that no row explains: a stack. */
export function hasStack(program: Program | null): boolean {
  return program?.unexplained?.some((bytes) => bytes !== 0) ?? false;
}

/** Whether anything is known of what the bytes are for. */
export function hasRoles(rows: Rows): boolean {
  return rows.role.some((role, row) => role !== 0 && rows.charge[row] > 0);
}

/** Bytes per role number, over some rows. */
export function bytesByRole(rows: Rows, live: Iterable<number>): Map<number, number> {
  const bytes = new Map<number, number>();
  for (const row of live) bytes.set(rows.role[row], (bytes.get(rows.role[row]) ?? 0) + rows.charge[row]);
  return new Map([...bytes].sort((a, b) => b[1] - a[1]));
}

/** Bytes at each position of an axis of the rows that have a 1 in `only`. */
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
