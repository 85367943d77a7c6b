import type { Regions, Rows } from "../payload/recording/rows";

/** A reserved range of addresses and the chunks in use there, by address. */
export interface Segment {
  region: number;
  size: number;
  used: number;
  /** Bytes of the chunks whose free waits for other streams. */
  awaiting: number;
  /** Row numbers, by offset. */
  chunks: Uint32Array;
  hole: ByteRange;
  /** First address; NaN if unknown. */
  address: number;
}

/** Bytes [from, to): offsets in a segment, or bytes of the y axis. */
export interface ByteRange {
  from: number;
  to: number;
}

/** A filled piece of a segment in pixels; `row` is its chunk, or -1 if several chunks share the piece. */
interface SegmentPiece {
  x: number;
  width: number;
  color: number;
  row: number;
}

const NO_FREE_RANGE: ByteRange = { from: 0, to: 0 };

/** Return whether a live row's free has been requested, and waits for other streams. */
export function awaitsFree({ last_used, end }: Rows, row: number, position: number): boolean {
  return last_used[row] <= position && last_used[row] < end[row] - 1;
}

/**
 * Return each region that exists at a position as a segment, in region order, with the live rows at known
 * addresses in it. `hole` is the largest free range; empty if the segment is full.
 */
export function layoutSegments(rows: Rows, live: Uint32Array, regions: Regions, position: number): Segment[] {
  const inside = Array.from({ length: regions.length }, (): number[] => []);
  for (const row of live) if (rows.offset[row] >= 0) inside[rows.region[row]]?.push(row);
  const existing = inside
    .map((chunks, region) => ({ chunks, region }))
    .filter(({ region }) => regionExists(regions, region, position));
  return existing.map(({ chunks, region }) => {
    const segment = {
      region,
      size: regions.size[region],
      used: 0,
      awaiting: 0,
      chunks: Uint32Array.from(chunks).sort((a, b) => rows.offset[a] - rows.offset[b]),
      hole: NO_FREE_RANGE,
      address: regions.address[region],
    };
    for (const row of chunks) {
      segment.used += rows.size[row];
      if (awaitsFree(rows, row, position)) segment.awaiting += rows.size[row];
    }
    for (let place = 0; place <= chunks.length; place++) {
      const hole = gapBefore(segment, rows, place);
      if (hole.to - hole.from > segment.hole.to - segment.hole.from) segment.hole = hole;
    }
    return segment;
  });
}

/** Return a row in each region, which names the region's pool; -1 for none. */
export function rowInRegions(rows: Rows, regions: Regions): Int32Array {
  const found = new Int32Array(regions.length).fill(-1);
  for (let row = rows.length - 1; row >= 0; row--) if (rows.region[row] >= 0) found[rows.region[row]] = row;
  return found;
}

/** Return the row that each event of an allocator allocates, frees, or requests to free; -1 for none. */
export function rowsByEvent({ start, last_used, end }: Rows, length: number): Int32Array {
  const found = new Int32Array(length).fill(-1);
  for (const events of [last_used, end, start])
    for (let row = 0; row < events.length; row++)
      if (events[row] >= 0 && events[row] < length) found[events[row]] = row;
  return found;
}

/** Return the free bytes before the chunk at index `place`; after the last chunk, those up to the segment's end. */
function gapBefore({ chunks, size }: Segment, rows: Rows, place: number): ByteRange {
  const from = place === 0 ? 0 : rows.offset[chunks[place - 1]] + rows.size[chunks[place - 1]];
  const to = place === chunks.length ? size : rows.offset[chunks[place]];
  return { from, to };
}

/** Return the chunk at an offset of a segment, or the free range there. */
export function findAtOffset(
  segment: Segment,
  rows: Rows,
  offset: number,
): { row: number; hole: ByteRange | null } {
  const { chunks } = segment;
  let low = 0;
  let high = chunks.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows.offset[chunks[middle]] <= offset) low = middle + 1;
    else high = middle;
  }
  const row = low === 0 ? -1 : chunks[low - 1];
  if (row >= 0 && offset < rows.offset[row] + rows.size[row]) return { row, hole: null };
  return { row: -1, hole: gapBefore(segment, rows, low) };
}

/**
 * Return one piece for each chunk at least a pixel wide, and one piece for each pixel that narrower chunks
 * touch. The cost depends on the number of pixels, even for a million chunks, and no chunk looks free.
 */
export function segmentPieces({ chunks }: Segment, rows: Rows, scale: number): SegmentPiece[] {
  const drawn: SegmentPiece[] = [];
  let filled = -1; // Pixel of the last narrow piece.
  for (const row of chunks) {
    const x = rows.offset[row] * scale;
    const width = rows.size[row] * scale;
    if (width >= 1) drawn.push({ x, width, color: rows.color[row], row });
    else if (Math.floor(x) > filled) {
      filled = Math.floor(x);
      drawn.push({ x: filled, width: 1, color: rows.color[row], row: -1 });
    }
  }
  return drawn;
}

/** Free bytes between two live rows; -1 is an edge of the surrounding memory. */
export interface Hole extends ByteRange {
  below: number;
  above: number;
}

/** Return the bytes of a region along the y axis. An unbounded region has no known end. */
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
