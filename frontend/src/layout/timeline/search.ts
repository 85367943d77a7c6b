import type { Search } from "../../base/search";
import type { Regions } from "../../payload/recording/regions";
import type { Rows } from "../../payload/recording/rows";
import { filterRows } from "../table/table_filter";
import { hasBlock, type ShownRegions } from "./blocks";

export interface TimelineMatches {
  /** Matching rows that have a block, by position and then by byte. */
  rows: Uint32Array;
  /** 1 for each matching row; null without a search. */
  highlighted: Uint8Array | null;
  /** Number of matching rows that are not drawn. */
  hidden: number;
  error: string | null;
}

/** Find the rows that match a search on the timeline. The table searches the same texts. */
export function findMatches(
  rows: Rows,
  regions: Regions,
  show: ShownRegions,
  search: Search,
): TimelineMatches {
  if (search.empty) return { rows: new Uint32Array(0), highlighted: null, hidden: 0, error: null };
  const every = Uint32Array.from({ length: rows.length }, (_, row) => row);
  const found = filterRows(rows, every, search, "");
  const highlighted = new Uint8Array(rows.length);
  for (const row of found.rows) highlighted[row] = 1;
  const drawn = found.rows.filter((row) => hasBlock(rows, regions, row, show));
  const byteOf = (row: number): number => regions.base[rows.region[row]] + rows.offset[row];
  drawn.sort((a, b) => rows.defined[a] - rows.defined[b] || byteOf(a) - byteOf(b));
  return {
    rows: drawn,
    highlighted,
    hidden: found.rows.length - drawn.length,
    error: found.errors[0] ?? null,
  };
}

/** Intersect two highlights; null highlights everything. */
export function intersectHighlights(one: Uint8Array | null, other: Uint8Array | null): Uint8Array | null {
  if (one === null || other === null) return one ?? other;
  return one.map((highlighted, row) => highlighted & other[row]);
}

/**
 * Return the next or previous match, wrapping around; without a current match, the first from `position` on.
 */
export function nextMatch(
  matches: Uint32Array,
  current: number | null,
  step: 1 | -1,
  definedOf: (row: number) => number,
  position: number,
): number | null {
  if (matches.length === 0) return null;
  const at = current === null ? -1 : matches.indexOf(current);
  if (at >= 0) return matches[(at + step + matches.length) % matches.length];
  const after = matches.findIndex((row) => definedOf(row) >= position);
  const first = after < 0 ? 0 : after;
  return matches[step > 0 ? first : (first - 1 + matches.length) % matches.length];
}
