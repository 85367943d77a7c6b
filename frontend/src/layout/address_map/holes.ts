import type { Regions } from "../../payload/recording/regions";
import type { Rows } from "../../payload/recording/rows";

/** Free bytes [from, to) between two live rows; -1 is an edge of the surrounding memory. */
export interface Hole {
  from: number;
  to: number;
  below: number;
  above: number;
}

/** Bytes [from, to) of the y axis in one region. An unbounded region has no known end. */
interface ByteRange {
  from: number;
  to: number;
}

function regionRange({ base, size, bounded }: Regions, region: number): ByteRange {
  return { from: base[region], to: bounded ? base[region] + size[region] : Infinity };
}

/** Return the holes between the rows live at a position, largest first. */
export function holesAt(rows: Rows, regions: Regions, position: number): Hole[] {
  const live: number[][] = Array.from({ length: regions.length }, () => []);
  for (let row = 0; row < rows.length; row++)
    if (isLive(rows, row, position)) live[rows.region[row]].push(row);
  return live
    .flatMap((within, region) =>
      regionExists(regions, region, position)
        ? holesBetween(rows, within, regionRange(regions, region), regions.base[region])
        : [],
    )
    .sort((a, b) => b.to - b.from - (a.to - a.from));
}

function holesBetween({ offset, size }: Rows, live: number[], { from, to }: ByteRange, base: number): Hole[] {
  const holes: Hole[] = [];
  let [reached, below] = [from, -1];
  for (const row of live.sort((a, b) => offset[a] - offset[b])) {
    const bottom = base + offset[row];
    if (bottom > reached) holes.push({ from: reached, to: bottom, below, above: row });
    if (bottom + size[row] <= reached) continue;
    reached = bottom + size[row];
    below = row;
  }
  if (to > reached && to < Infinity) holes.push({ from: reached, to, below, above: -1 });
  return holes;
}

/** Return the hole that contains a byte; null if a row uses the byte or no row bounds it above. */
export function holeAt(rows: Rows, regions: Regions, position: number, byte: number): Hole | null {
  let region = 0;
  while (region < regions.length && !contains(regionRange(regions, region), byte)) region++;
  if (region === regions.length || !regionExists(regions, region, position)) return null;
  let { from, to } = regionRange(regions, region);
  let [below, above] = [-1, -1];
  for (let row = 0; row < rows.length; row++) {
    if (rows.region[row] !== region || !isLive(rows, row, position)) continue;
    const bottom = regions.base[region] + rows.offset[row];
    const top = bottom + rows.size[row];
    if (top <= byte) {
      if (top > from) [from, below] = [top, row];
    } else if (bottom <= byte) return null;
    else if (bottom < to) [to, above] = [bottom, row];
  }
  return to === Infinity ? null : { from, to, below, above };
}

function regionExists({ start, end }: Regions, region: number, position: number): boolean {
  return start[region] <= position && position < end[region];
}

function contains({ from, to }: ByteRange, byte: number): boolean {
  return from <= byte && byte < to;
}

/** Return the live bytes of rows without an address. They may be inside apparent holes. */
export function unplacedBytes(rows: Rows, position: number): number {
  let bytes = 0;
  for (let row = 0; row < rows.length; row++)
    if (rows.offset[row] < 0 && rows.start[row] <= position && position < rows.end[row])
      bytes += rows.charge[row];
  return bytes;
}

function isLive({ start, end, offset, region, size }: Rows, row: number, position: number): boolean {
  return (
    start[row] <= position && position < end[row] && offset[row] >= 0 && region[row] >= 0 && size[row] > 0
  );
}
