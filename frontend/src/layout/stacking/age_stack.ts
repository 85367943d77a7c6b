import { lowerBound, radixSortBy } from "../../base/sort";
import type { Rows } from "../../payload/recording/rows";
import type { TimelineBox } from "../axis";
import type { Placement } from "./stacking";

/** Charged rows as columns, in order of allocation. The index in these columns is the rank. */
export interface RowsByAge {
  length: number;
  /** Number of positions on the axis. */
  positions: number;
  row: Int32Array;
  /** Live at positions [start, end), clipped to the axis. */
  start: Int32Array;
  end: Int32Array;
  bytes: Float64Array;
  color: Uint8Array;
}

/**
 * Sort the charged rows by age. Rows allocated at the same position, or before the first one, keep their table order.
 */
export function rowsByAge({ length, start, end, charge, color }: Rows, positions: number): RowsByAge {
  const lives = new Uint32Array(length);
  let count = 0;
  for (let row = 0; row < length; row++)
    if (charge[row] > 0 && end[row] > Math.max(start[row], 0) && start[row] < positions) lives[count++] = row;
  const born = radixSortBy(start, lives.subarray(0, count));
  const sorted: RowsByAge = {
    length: count,
    positions,
    row: new Int32Array(count),
    start: new Int32Array(count),
    end: new Int32Array(count),
    bytes: new Float64Array(count),
    color: new Uint8Array(count),
  };
  // TypedArray.from with a function takes ten times as long.
  for (let rank = 0; rank < count; rank++) {
    const row = born[rank];
    sorted.row[rank] = row;
    sorted.start[rank] = Math.max(start[row], 0);
    sorted.end[rank] = Math.min(end[row], positions);
    sorted.bytes[rank] = charge[row];
    sorted.color[rank] = color[row];
  }
  return sorted;
}

/** Ranks that are skipped together if all of them ended before. */
const RANKS_PER_RUN = 256;

/** Positions that share one precomputed maximum. */
const POSITIONS_PER_STRETCH = 64;

/**
 * Live rows stacked by age at every position, without gaps: when a row is freed, all rows above it move down. The top
 * is the bytes in use. A row has no fixed height, so its place at a position is computed from the rows live there.
 */
export class AgeStack {
  /** Bytes in use at each position. */
  readonly inUse: Float64Array<ArrayBuffer>;
  readonly height: number;
  /** Maximum number of rows live at the same time. */
  readonly maxLive: number;
  /** Last end in each run of ranks. */
  private readonly lastEnd: Int32Array;
  /** Position with the most bytes in use in each stretch. */
  private readonly fullest: Int32Array;
  private readonly rankOf = new Map<number, number>();

  constructor(readonly rows: RowsByAge) {
    const { length, positions, start, end, bytes } = rows;
    this.inUse = new Float64Array(positions + 1);
    const live = new Int32Array(positions + 1);
    this.lastEnd = new Int32Array(Math.ceil(length / RANKS_PER_RUN));
    for (let rank = 0; rank < length; rank++) {
      this.inUse[start[rank]] += bytes[rank];
      this.inUse[end[rank]] -= bytes[rank];
      live[start[rank]] += 1;
      live[end[rank]] -= 1;
      const run = Math.floor(rank / RANKS_PER_RUN);
      this.lastEnd[run] = Math.max(this.lastEnd[run], end[rank]);
    }
    let [height, mostLive] = [0, 0];
    for (let position = 0; position < positions; position++) {
      if (position > 0) this.inUse[position] += this.inUse[position - 1];
      if (position > 0) live[position] += live[position - 1];
      height = Math.max(height, this.inUse[position]);
      mostLive = Math.max(mostLive, live[position]);
    }
    this.fullest = new Int32Array(Math.ceil(positions / POSITIONS_PER_STRETCH));
    for (let position = 0; position < positions; position++) {
      const stretch = Math.floor(position / POSITIONS_PER_STRETCH);
      if (position % POSITIONS_PER_STRETCH === 0 || this.inUse[position] > this.inUse[this.fullest[stretch]])
        this.fullest[stretch] = position;
    }
    this.height = height;
    this.maxLive = mostLive;
  }

  /** Return the first position in [first, last] with the most bytes in use. */
  fullestBetween(first: number, last: number): number {
    const { inUse } = this;
    let best = first;
    for (let position = first; position <= last; position++) {
      let fuller = position;
      if (position % POSITIONS_PER_STRETCH === 0 && position + POSITIONS_PER_STRETCH <= last) {
        fuller = this.fullest[position / POSITIONS_PER_STRETCH];
        position += POSITIONS_PER_STRETCH - 1;
      }
      if (inUse[fuller] > inUse[best]) best = fuller;
    }
    return best;
  }

  /** Return the ranks live at a position, oldest first. */
  liveAt(position: number): number[] {
    const { start, end } = this.rows;
    const born = this.allocatedBy(position);
    const live: number[] = [];
    for (let run = 0; run * RANKS_PER_RUN < born; run++) {
      if (this.lastEnd[run] <= position) continue;
      for (let rank = run * RANKS_PER_RUN; rank < Math.min((run + 1) * RANKS_PER_RUN, born); rank++)
        if (start[rank] <= position && end[rank] > position) live.push(rank);
    }
    return live;
  }

  /** Return the number of rows allocated at or before a position. These are the first ranks. */
  allocatedBy(position: number): number {
    return lowerBound(this.rows.start, position + 1, 0, this.rows.length);
  }

  /**
   * Return a row's boxes over its lifetime, in positions and bytes. The row moves down with each older row
   * that is freed.
   */
  rowBoxes(row: number): TimelineBox[] {
    const { start, end, bytes } = this.rows;
    const rank = this.rank(row);
    if (rank < 0) return [];
    const older = this.liveAt(start[rank]).filter((other) => other < rank);
    older.sort((a, b) => end[a] - end[b]);
    let bottom = older.reduce((sum, other) => sum + bytes[other], 0);
    let from = start[rank];
    const boxes: TimelineBox[] = [];
    const closeAt = (to: number): void => {
      if (to > from) boxes.push({ start: from, end: to, bottom, top: bottom + bytes[rank] });
      from = to;
    };
    for (const other of older) {
      if (end[other] >= end[rank]) break;
      closeAt(end[other]);
      bottom -= bytes[other];
    }
    closeAt(end[rank]);
    return boxes;
  }

  /** Return a placement for tables of `rows` rows: every row of the stack starts at 0. */
  placement(rows: number): Placement {
    const offset = new Float64Array(rows).fill(-1);
    for (const row of this.rows.row) offset[row] = 0;
    return { offset, height: this.height };
  }

  private rank(row: number): number {
    // The pointer stays on a row for many pictures, so the search through all rows runs once.
    const known = this.rankOf.get(row) ?? this.rows.row.indexOf(row);
    this.rankOf.set(row, known);
    return known;
  }
}
