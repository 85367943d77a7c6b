import type { Regions } from "../../payload/recording/regions";
import type { Rows } from "../../payload/recording/rows";
import type { Axis } from "../axis/axis";
import type { TimelineBox, View } from "../axis/span";

/**
 * Blocks of a timeline as columns. Block i covers values [start, end) of the x axis and bytes [bottom, top)
 * of the stacked regions.
 */
export interface Blocks {
  length: number;
  start: Float64Array;
  end: Float64Array;
  bottom: Float64Array;
  top: Float64Array;
  color: Uint8Array;
  row: Int32Array;
}

export function emptyBlocks(capacity: number): Blocks {
  return {
    length: 0,
    start: new Float64Array(capacity),
    end: new Float64Array(capacity),
    bottom: new Float64Array(capacity),
    top: new Float64Array(capacity),
    color: new Uint8Array(capacity),
    row: new Int32Array(capacity),
  };
}

export type ShownRegions = "temp" | "all";

function isShown(regions: Regions, region: number, show: ShownRegions): boolean {
  return region >= 0 && region < regions.length && (show === "all" || regions.temporary[region] !== 0);
}

/**
 * Return a row's box on an axis of `length` positions: its lifetime, both ends included, clipped to the axis.
 * A row entirely outside the axis gets the nearest position, so that every buffer has a block.
 */
export function rowBox(rows: Rows, regions: Regions, row: number, length: number): TimelineBox {
  const start = Math.min(Math.max(rows.defined[row], 0), Math.max(length - 1, 0));
  const bottom = regions.base[rows.region[row]] + rows.offset[row];
  return {
    start,
    end: Math.max(start + 1, Math.min(rows.last_used[row] + 1, length)),
    bottom,
    top: bottom + rows.size[row],
  };
}

/** Convert a box from positions to values of an axis. */
export function boxOnAxis(axis: Axis, box: TimelineBox): TimelineBox {
  return { ...box, start: axis.at(box.start), end: axis.at(box.end) };
}

/** Return whether a row has a block: it has bytes and a known place in a visible region. */
export function hasBlock(rows: Rows, regions: Regions, row: number, show: ShownRegions): boolean {
  return rows.size[row] > 0 && rows.offset[row] >= 0 && isShown(regions, rows.region[row], show);
}

/** Return one block for each row with bytes in a visible region; `clock` as in Axis. */
export function timelineBlocks(
  rows: Rows,
  regions: Regions,
  length: number,
  show: ShownRegions,
  clock: Float64Array | null = null,
): Blocks {
  const blocks = emptyBlocks(rows.length);
  const last = Math.max(length - 1, 0);
  let count = 0;
  for (let row = 0; row < rows.length; row++) {
    if (!hasBlock(rows, regions, row, show)) continue;
    const start = Math.min(Math.max(rows.defined[row], 0), last);
    const end = Math.max(start + 1, Math.min(rows.last_used[row] + 1, length));
    const bottom = regions.base[rows.region[row]] + rows.offset[row];
    blocks.start[count] = clock === null ? start : clock[start];
    blocks.end[count] = clock === null ? end : clock[end];
    blocks.bottom[count] = bottom;
    blocks.top[count] = bottom + rows.size[row];
    blocks.color[count] = rows.color[row];
    blocks.row[count] = row;
    count += 1;
  }
  blocks.length = count;
  return blocks;
}

/** Return the full extent: the whole axis and the bytes of the visible regions. */
export function timelineExtent(regions: Regions, axis: Axis, show: ShownRegions): View {
  let top = 0;
  for (let region = 0; region < regions.length; region++)
    if (isShown(regions, region, show)) top = Math.max(top, regions.base[region] + regions.size[region]);
  return { x: axis.extent, y: [0, Math.max(top, 1)] };
}

/** Return bottom and top of each visible region in bytes, in pairs. */
export function regionBands(regions: Regions, show: ShownRegions): Float64Array {
  const bands: number[] = [];
  for (let region = 0; region < regions.length; region++)
    if (isShown(regions, region, show) && regions.size[region] > 0)
      bands.push(regions.base[region], regions.base[region] + regions.size[region]);
  return Float64Array.from(bands);
}
