import type { Rows } from "../../payload/recording/rows";
import { ROLES } from "../../payload/generated/constants";
import type { TextColumn } from "../../payload/tables/text_column";

/** Columns that a table of buffers can be sorted by. */
export type RowSortKey =
  | "name"
  | "role"
  | "size"
  | "unpadded"
  | "expansion"
  | "shape"
  | "op"
  | "op_name"
  | "source"
  | "dtype"
  | "stack"
  | "step"
  | "start"
  | "duration"
  | "defined"
  | "last_used";

export interface RowSort {
  key: RowSortKey;
  descending: boolean;
}

/** Return size divided by requested bytes; 1 if nothing was requested. */
export function expansion(rows: Rows, row: number): number {
  return rows.unpadded[row] > 0 ? rows.size[row] / rows.unpadded[row] : 1;
}

/**
 * Return how long a row was live within the recording: in ns if `times` contains the positions' times,
 * otherwise in positions.
 */
export function rowLifetime(rows: Rows, row: number, times: Float64Array | null): number {
  if (times === null) return rows.end[row] - rows.start[row];
  const last = times.length - 1;
  return times[Math.min(rows.end[row], last)] - times[Math.max(rows.start[row], 0)];
}

/** Sort rows. Equal rows keep row order, which is program order, in both directions. */
export function sortRows(
  rows: Rows,
  selected: Uint32Array,
  { key, descending }: RowSort,
  times: Float64Array | null = null,
): Uint32Array {
  const value = sortValue(rows, selected, key, times);
  const sign = descending ? -1 : 1;
  return selected.slice().sort((a, b) => sign * (value(a) - value(b)) || a - b);
}

function sortValue(
  rows: Rows,
  selected: Uint32Array,
  key: RowSortKey,
  times: Float64Array | null,
): (row: number) => number {
  switch (key) {
    case "size":
    case "unpadded":
    case "start":
    case "defined":
    case "last_used": {
      const column = rows[key];
      return (row) => column[row];
    }
    // Step codes are in the order of the steps.
    case "step": {
      const { codes } = rows.step;
      return (row) => codes[row];
    }
    case "duration":
      return (row) => rowLifetime(rows, row, times);
    case "expansion":
      return (row) => expansion(rows, row);
    case "role": {
      const rank = rankTexts([...ROLES]);
      return (row) => rank[rows.role[row]];
    }
    default:
      return rankColumn(rows[key], selected);
  }
}

const collator = new Intl.Collator("en", { numeric: true });

/** Rank each distinct text once, so that sorting 100,000 rows compares numbers. */
function rankColumn(column: TextColumn, selected: Uint32Array): (row: number) => number {
  const first = new Map<number, number>();
  for (const row of selected) if (!first.has(column.codes[row])) first.set(column.codes[row], row);
  const codes = [...first.keys()];
  const rank = rankTexts([...first.values()].map((row) => column.at(row)));
  const ranks = new Map(codes.map((code, i) => [code, rank[i]]));
  return (row) => ranks.get(column.codes[row]) ?? 0;
}

/** Return the rank of each text; equal texts share a rank. */
function rankTexts(texts: string[]): number[] {
  const order = texts.map((_, i) => i).sort((a, b) => collator.compare(texts[a], texts[b]));
  const rank = new Array<number>(texts.length).fill(0);
  order.forEach((text, place) => {
    const before = order[place - 1];
    rank[text] = place > 0 && texts[before] === texts[text] ? rank[before] : place;
  });
  return rank;
}
