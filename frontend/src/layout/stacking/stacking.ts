import { indices, radixSortBy } from "../../base/sort";
import type { Program } from "../../payload/recording/recording";
import { type ColumnName, mapColumns, type Regions, type Rows } from "../../payload/recording/rows";
import { NO_TEXT, TextColumn, TextDictionary } from "../../payload/tables/text_column";
import { GapAllocator } from "./gap_allocator";

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
      // Joined by cutting out unused addresses, it has no single first address.
      address: Float64Array.of(NaN),
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

/** Return rows by address. Regions are kept if they are reserved memory; otherwise unused addresses are cut out. */
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
interface PlacedRows {
  rows: Rows;
  regions: Regions;
}

/** Positions [start, end) with a constant number of bytes. */
interface ConstantStretch {
  start: number;
  end: number;
  bytes: number;
}

/** Return the stretches with nonzero bytes, in order. */
export function constantStretches(bytes: Float64Array): ConstantStretch[] {
  const found: ConstantStretch[] = [];
  for (let start = 0, end = 0; start < bytes.length; start = end) {
    while (end < bytes.length && bytes[end] === bytes[start]) end += 1;
    if (bytes[start] > 0) found.push({ start, end, bytes: bytes[start] });
  }
  return found;
}

/**
 * Append a row called `name` for each stretch of bytes that no row explains, so that the rows sum to the
 * bytes in use at every position. The appended rows have no address.
 */
export function appendUnexplained(rows: Rows, { unexplained }: Program, name: string): Rows {
  const stretches = unexplained === null ? [] : constantStretches(unexplained);
  if (stretches.length === 0) return rows;
  const starts = stretches.map(({ start }) => start);
  const ends = stretches.map(({ end }) => end);
  const bytes = stretches.map((stretch) => stretch.bytes);
  const every = (value: number): number[] => stretches.map(() => value);
  const names = rows.name.dictionary.with(name);
  const numbers: Partial<Record<ColumnName, readonly number[]>> = {
    ...{ size: bytes, requested: bytes, charge: bytes, start: starts, end: ends, defined: starts },
    ...{ id: every(-1), offset: every(-1) },
    last_used: ends.map((end) => end - 1),
    canonical: stretches.map((_, stretch) => rows.length + stretch),
  };
  const columns = mapColumns((key) => {
    const column = rows[key];
    if (!(column instanceof TextColumn)) return extend(column, numbers[key] ?? every(0));
    return new TextColumn(extend(column.codes, every(NO_TEXT)), column.dictionary);
  });
  return {
    ...columns,
    length: rows.length + stretches.length,
    name: new TextColumn(extend(rows.name.codes, every(names.length - 1)), names),
    roles_follow: rows.roles_follow,
    color: extend(rows.color, every(0)),
  };
}

type NumberColumn = Float64Array | Int32Array | Uint32Array | Uint8Array;

function extend<T extends NumberColumn>(column: T, more: readonly number[]): T {
  const all = new (column.constructor as new (length: number) => T)(column.length + more.length);
  all.set(column);
  all.set(more, column.length);
  return all;
}
