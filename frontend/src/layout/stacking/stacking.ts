import type { Regions } from "../../payload/recording/regions";
import type { Rows } from "../../payload/recording/rows";
import { TextColumn, TextDictionary } from "../../payload/tables/text_column";
import { GapAllocator } from "./gap_allocator";
import { indices, radixSortBy } from "../../base/radix_sort";

/** How an allocator's rows are placed on the timeline's y axis; by age they are at no one place, see AgeStack. */
export type AllocationLayout = FixedLayout | "age";

/** Each row at one height for all its life. */
export type FixedLayout = "stacked" | "address";

/** What it takes of the rows to place them. */
export interface Lifetimes {
  start: Int32Array;
  end: Int32Array;
  size: Float64Array;
  charge: Float64Array;
  /** Address of each row; -1 where it is not known. */
  address: Float64Array;
}

/** Where rows are: the byte that each begins at, -1 for none, and one past the last byte of all. */
export interface Placement {
  offset: Float64Array<ArrayBuffer>;
  height: number;
}

export function rowLifetimes(rows: Rows, regions: Regions): Lifetimes {
  const { start, end, size, charge, offset, region } = rows;
  const address = offset.map((bytes, row) => (bytes < 0 ? -1 : bytes + (regions.base[region[row]] ?? 0)));
  return { start, end, size, charge, address };
}

/** Rows between two tellings of how far it is. */
const PROGRESS_INTERVAL = 1 << 16;

/** Places rows. It is told from time to time what share of them is placed. */
export function placeRows(
  layout: FixedLayout,
  lives: Lifetimes,
  onShare: (share: number) => void,
): Placement {
  return layout === "stacked" ? placeStacked(lives, onShare) : placeByAddress(lives);
}

/**
 * The rows where their addresses put them. What lies at no known address has no place. Stretches that no row ever
 * uses are cut out, as addresses can be gigabytes apart: a byte on the axis counts those that some row lies in.
 */
export function placeByAddress({ address, size }: Lifetimes): Placement {
  const known = indices(address.length).filter((row) => address[row] >= 0 && size[row] > 0);
  const offset = new Float64Array(address.length).fill(-1);
  // `cut` bytes below here are in no row; `reached` is the highest byte so far.
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
 * The rows stacked in order of their start, each in about the smallest gap that holds it, else on top: the height of
 * the stack follows what is in use, whatever the addresses are. What was there before lies at the bottom.
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
    // What never lived, by the numbers of a broken file, was not placed before its end and stays where it is put.
    for (; freed < byEnd.length && end[byEnd[freed]] <= start[row]; freed++)
      if (gaps.offset[byEnd[freed]] >= 0) gaps.free(byEnd[freed]);
    gaps.allocate(row, charge[row]);
    if (placed % PROGRESS_INTERVAL === 0) onShare(placed / byStart.length);
  }
  return { offset: gaps.offset, height: gaps.height };
}

const NAMELESS = new TextDictionary(new Uint32Array(1), new Uint8Array(0));

/** The rows at their new places, in one region from zero, always shown and without a name. */
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

/** Where rows lie, each region in whole where the recording's are memory that was held; else what rows ever lay in. */
export function mapByAddress(kind: string, { rows, regions }: PlacedRows): PlacedRows {
  return regionsAreReserved(kind, regions)
    ? { rows, regions }
    : applyPlacement(rows, "address", placeByAddress(rowLifetimes(rows, regions)));
}

/** Whether regions are memory that was held, and not only the addresses that were seen. */
export function regionsAreReserved(kind: string, regions: Regions): boolean {
  return kind !== "allocator" && regions.length > 0;
}

/** Rows with a place on the timeline's y axis, and the one region that they lie in. */
export interface PlacedRows {
  rows: Rows;
  regions: Regions;
}
