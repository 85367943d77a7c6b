import type { Rows } from "../payload/recording";

/** Free bytes [from, to) between two live rows; `below` is -1 where there is no row down to the lowest address. */
export interface Hole {
  from: number;
  to: number;
  below: number;
  above: number;
}

/** What is free between the rows that are live at a position, the largest first. Rows lie where their addresses are. */
export function holesAt(rows: Rows, position: number): Hole[] {
  const { offset, size } = rows;
  const live: number[] = [];
  for (let row = 0; row < rows.length; row++) if (isLive(rows, row, position)) live.push(row);
  live.sort((a, b) => offset[a] - offset[b]);
  const holes: Hole[] = [];
  let [reached, below] = [0, -1];
  for (const row of live) {
    if (offset[row] > reached) holes.push({ from: reached, to: offset[row], below, above: row });
    if (offset[row] + size[row] <= reached) continue;
    reached = offset[row] + size[row];
    below = row;
  }
  return holes.sort((a, b) => b.to - b.from - (a.to - a.from));
}

/** The hole that a byte lies in; null where a row has it, or nothing lies above. */
export function holeAt(rows: Rows, position: number, byte: number): Hole | null {
  const { offset, size } = rows;
  let [from, to, below, above] = [0, Infinity, -1, -1];
  for (let row = 0; row < rows.length; row++) {
    if (!isLive(rows, row, position)) continue;
    const top = offset[row] + size[row];
    if (top <= byte) {
      if (top > from) [from, below] = [top, row];
    } else if (offset[row] <= byte) return null;
    else if (offset[row] < to) [to, above] = [offset[row], row];
  }
  return above < 0 ? null : { from, to, below, above };
}

/** Bytes live at a position of rows without an address: they may lie in what seems a hole. */
export function unplacedBytes(rows: Rows, position: number): number {
  let bytes = 0;
  for (let row = 0; row < rows.length; row++)
    if (rows.offset[row] < 0 && rows.start[row] <= position && position < rows.end[row])
      bytes += rows.charge[row];
  return bytes;
}

function isLive({ start, end, offset, size }: Rows, row: number, position: number): boolean {
  return start[row] <= position && position < end[row] && offset[row] >= 0 && size[row] > 0;
}
