import type { Regions } from "../../payload/recording/regions";
import type { Rows } from "../../payload/recording/rows";
import { TextColumn, TextDictionary } from "../../payload/tables/text_column";
import { GapAllocator } from "./gap_allocator";
import { indices, radixSortBy } from "../../base/radix_sort";

/** Layout of an allocator's rows on the timeline's y axis. By age, rows have no fixed place: see AgeStack. */
export type AllocationLayout = FixedLayout | "age";

/** Layouts that keep each row at one height for its lifetime. */
export type FixedLayout = "stacked" | "address";

/** Columns of the rows that determine their placement. */
export interface Lifetimes {
  start: Int32Array;
  end: Int32Array;
  size: Float64Array;
  charge: Float64Array;
  /** Address of each row; -1 if unknown. */
  address: Float64Array;
}

/** First byte of each row on the y axis, -1 for none, and the total height in bytes. */
export interface Placement {
  offset: Float64Array<ArrayBuffer>;
  height: number;
}

export function rowLifetimes(rows: Rows, regions: Regions): Lifetimes {
  const { start, end, size, charge, offset, region } = rows;
  const address = offset.map((bytes, row) => (bytes < 0 ? -1 : bytes + (regions.base[region[row]] ?? 0)));
  return { start, end, size, charge, address };
}

/** Number of rows between two progress reports. */
const PROGRESS_INTERVAL = 1 << 16;

/** Place rows. `onShare` receives the share of rows placed so far. */
export function placeRows(
  layout: FixedLayout,
  lives: Lifetimes,
  onShare: (share: number) => void,
): Placement {
  return layout === "stacked" ? placeStacked(lives, onShare) : placeByAddress(lives);
}

/**
 * Place rows by address. Rows without a known address have no place. Ranges that no row ever uses are cut
 * out, because addresses can be gigabytes apart.
 */
export function placeByAddress({ address, size }: Lifetimes): Placement {
  const known = indices(address.length).filter((row) => address[row] >= 0 && size[row] > 0);
  const offset = new Float64Array(address.length).fill(-1);
  // `cut` bytes below this point are in no row; `reached` is the highest byte so far.
  let cut = 0;
  let reached = 0;
  for (const row of radixSortBy(address, known)) {
    const bottom = address[row];
    if (bottom > reached) cut += bottom - reached;
    offset[row] = bottom - cut;
    reached = Math.max(reached, bottom + size[row]);
  }
  return { offset, height: reached - cut };
}

/**
 * Stack rows in order of their start, each in one of the smallest gaps that can contain it, or on top. The
 * height follows the bytes in use, independent of addresses. Rows older than the recording are at the bottom.
 */
export function placeStacked(
  { start, end, charge }: Lifetimes,
  onShare: (share: number) => void = () => {},
): Placement {
  const charged = indices(charge.length).filter((row) => charge[row] > 0);
  const byStart = radixSortBy(start, charged);
  const byEnd = radixSortBy(end, charged);
  const gaps = new GapAllocator(charge.length);
  let freed = 0;
  for (let placed = 0; placed < byStart.length; placed++) {
    const row = byStart[placed];
    // In a broken file, a row can end before it starts. It is not freed then and keeps its place.
    for (; freed < byEnd.length && end[byEnd[freed]] <= start[row]; freed++)
      if (gaps.offset[byEnd[freed]] >= 0) gaps.free(byEnd[freed]);
    gaps.allocate(row, charge[row]);
    if (placed % PROGRESS_INTERVAL === 0) onShare(placed / byStart.length);
  }
  return { offset: gaps.offset, height: gaps.height };
}

const NAMELESS = new TextDictionary(new Uint32Array(1), new Uint8Array(0));

/** Return the rows at their new places, in one unnamed region that starts at 0 and is always visible. */
export function applyPlacement(
  rows: Rows,
  layout: AllocationLayout,
  { offset, height }: Placement,
): PlacedRows {
  return {
    rows: {
      ...rows,
      offset,
      size: layout === "address" ? rows.size : rows.charge,
      region: new Int32Array(rows.length),
    },
    regions: {
      length: 1,
      index: new Float64Array(1),
      kind: new TextColumn(Uint32Array.of(0), NAMELESS),
      size: Float64Array.of(height),
      base: new Float64Array(1),
      temporary: Uint8Array.of(1),
      start: Int32Array.of(-1),
      end: Int32Array.of(2 ** 31 - 1),
      bounded: false,
    },
  };
}

/**
 * Return rows by address. Regions are kept if they are reserved memory; otherwise unused addresses are cut
 * out.
 */
export function mapByAddress(kind: string, { rows, regions }: PlacedRows): PlacedRows {
  return regionsAreReserved(kind, regions)
    ? { rows, regions }
    : applyPlacement(rows, "address", placeByAddress(rowLifetimes(rows, regions)));
}

/** Return whether regions are reserved memory, and not only addresses that occurred. */
export function regionsAreReserved(kind: string, regions: Regions): boolean {
  return kind !== "allocator" && regions.length > 0;
}

/** Rows with a place on the timeline's y axis, and the region that contains them. */
export interface PlacedRows {
  rows: Rows;
  regions: Regions;
}
