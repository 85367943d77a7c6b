import type { Rows } from "../../payload/recording/rows";
import { indices, radixSortBy } from "../../base/radix_sort";
import type { Placement } from "./stacking";
import type { TimelineBox } from "../axis/span";

/** The rows that add to what is in use, as columns in order of their birth; the index in them is a rank. */
export interface RowsByAge {
  length: number;
  /** Positions of the axis that they live on. */
  positions: number;
  row: Int32Array;
  /** Live at positions from start to before end, both cut to the axis. */
  start: Int32Array;
  end: Int32Array;
  bytes: Float64Array;
  color: Uint8Array;
}

/** Of rows born at one position, or all before the first, the one that comes first in the table is the older. */
export function rowsByAge({ length, start, end, charge, color }: Rows, positions: number): RowsByAge {
  const lives = indices(length).filter(
    (row) => charge[row] > 0 && end[row] > Math.max(start[row], 0) && start[row] < positions,
  );
  const born = radixSortBy(start, lives);
  return {
    length: born.length,
    positions,
    row: Int32Array.from(born),
    start: Int32Array.from(born, (row) => Math.max(start[row], 0)),
    end: Int32Array.from(born, (row) => Math.min(end[row], positions)),
    bytes: Float64Array.from(born, (row) => charge[row]),
    color: Uint8Array.from(born, (row) => color[row]),
  };
}

/** Ranks that are passed over together where all of them ended before. */
const RANKS_PER_RUN = 256;

/** Positions of which the fullest is known. */
const POSITIONS_PER_STRETCH = 64;

/**
 * At every position the live rows one on the other in order of their birth, with nothing between: what is freed lets
 * all above it sink, and the top is what is in use. So a row is at no one height, and where it lies at a position is
 * worked out from the rows live there.
 */
export class AgeStack {
  /** Bytes in use at each position, and the most ever. */
  readonly inUse: Float64Array<ArrayBuffer>;
  readonly height: number;
  /** The most rows that were ever live at once. */
  readonly maxLive: number;
  /** The last end in each run of ranks. */
  private readonly lastEnd: Int32Array;
  /** The fullest position of each stretch. */
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

  /** Of the positions from first to last, both included, the first with the most in use. */
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

  /** Ranks live at a position, the oldest first. */
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

  /** How many are born at a position or before: these are the first ranks. */
  allocatedBy(position: number): number {
    const { length, start } = this.rows;
    let low = 0;
    let high = length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (start[middle] <= position) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Where a row lies in the course of its life, in positions and bytes: lower with each older row that is freed. */
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

  /** For tables of so many rows: from zero up whatever is in the stack, as high as it ever is. */
  placement(rows: number): Placement {
    const offset = new Float64Array(rows).fill(-1);
    for (const row of this.rows.row) offset[row] = 0;
    return { offset, height: this.height };
  }

  private rank(row: number): number {
    // A pointer stays on a row for many pictures: looking through all of them once is soon enough.
    const known = this.rankOf.get(row) ?? this.rows.row.indexOf(row);
    this.rankOf.set(row, known);
    return known;
  }
}
