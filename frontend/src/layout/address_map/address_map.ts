import type { Addresses } from "../../payload/recording/addresses";
import type { Regions } from "../../payload/recording/regions";
import type { Rows } from "../../payload/recording/rows";

/** A reserved range of addresses and the chunks in use there, by address. */
export interface Segment {
  size: number;
  used: number;
  /** Row numbers, by offset. */
  chunks: Uint32Array;
  hole: FreeRange;
  /** First address; NaN if unknown. */
  address: number;
}

/** Free bytes between chunks: offsets [from, to). */
export interface FreeRange {
  from: number;
  to: number;
}

/** A filled piece of a segment in pixels; `row` is its chunk, or -1 if several chunks share the piece. */
export interface SegmentPiece {
  x: number;
  width: number;
  color: number;
  row: number;
}

const NO_FREE_RANGE: FreeRange = { from: 0, to: 0 };
const NO_ADDRESSES: Addresses = { region: () => NaN, address: () => NaN };

/**
 * Return each region that exists at a position as a segment, in region order, with the live rows at known
 * addresses in it. `hole` is the largest free range; empty if the segment is full.
 */
export function layoutSegments(
  rows: Rows,
  live: Uint32Array,
  regions: Regions,
  position: number,
  places: Addresses = NO_ADDRESSES,
): Segment[] {
  const inside = Array.from({ length: regions.length }, (): number[] => []);
  for (const row of live) if (rows.offset[row] >= 0) inside[rows.region[row]]?.push(row);
  const there = inside.map(
    (_, region) => regions.start[region] <= position && position < regions.end[region],
  );
  const existing = inside.map((chunks, region) => ({ chunks, region })).filter(({ region }) => there[region]);
  return existing.map(({ chunks, region }) => {
    chunks.sort((a, b) => rows.offset[a] - rows.offset[b]);
    // Regions that were joined by cutting out unused addresses have no single first address.
    const addressKnown = regions.bounded && chunks.length > 0;
    const found = {
      size: regions.size[region],
      used: 0,
      chunks: Uint32Array.from(chunks),
      hole: NO_FREE_RANGE,
      address: addressKnown ? places.address(chunks[0]) - rows.offset[chunks[0]] : NaN,
    };
    for (const row of chunks) found.used += rows.size[row];
    for (let place = 0; place <= chunks.length; place++) {
      const hole = gapBefore(found, rows, place);
      if (hole.to - hole.from > found.hole.to - found.hole.from) found.hole = hole;
    }
    return found;
  });
}

/**
 * Return the free bytes before the chunk at index `place`; after the last chunk, those up to the segment's
 * end.
 */
function gapBefore({ chunks, size }: Segment, rows: Rows, place: number): FreeRange {
  const from = place === 0 ? 0 : rows.offset[chunks[place - 1]] + rows.size[chunks[place - 1]];
  const to = place === chunks.length ? size : rows.offset[chunks[place]];
  return { from, to };
}

/** Return the chunk at an offset of a segment, or the free range there. */
export function findAtOffset(
  segment: Segment,
  rows: Rows,
  offset: number,
): { row: number; hole: FreeRange | null } {
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
