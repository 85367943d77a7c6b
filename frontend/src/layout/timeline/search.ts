import type { Search } from "../../base/search";
import { radixSortBy } from "../../base/sort";
import type { Regions, Rows } from "../../payload/recording/rows";
import { markMatches, parseFilters } from "../table/table_filter";
import { hasBlock, type ShownRegions } from "./blocks";

export interface TimelineMatches {
  /** Number of matching rows that have a block. */
  count: number;
  /** Return these rows by position and then by byte. */
  rows: () => Uint32Array;
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
  if (search.empty)
    return { count: 0, rows: () => new Uint32Array(0), highlighted: null, hidden: 0, error: null };
  const highlighted = markMatches(rows, search);
  const drawn = drawnRows(rows, regions, show);
  let [all, count] = [0, 0];
  for (let row = 0; row < drawn.length; row++) {
    all += highlighted[row];
    count += highlighted[row] & drawn[row];
  }
  let sorted: Uint32Array | null = null;
  return {
    count,
    // Sorting a million rows takes longer than finding them, and is needed only to go from one to the next.
    rows: () => (sorted ??= sortByPlace(rows, regions, listRows(highlighted, drawn, count))),
    highlighted,
    hidden: all - count,
    error: parseFilters(search, "").errors[0] ?? null,
  };
}

const lastDrawn = new WeakMap<Rows, { regions: Regions; show: ShownRegions; drawn: Uint8Array }>();

/** Return 1 for each row that has a block. The last answer is kept. */
function drawnRows(rows: Rows, regions: Regions, show: ShownRegions): Uint8Array {
  const last = lastDrawn.get(rows);
  if (last?.regions === regions && last.show === show) return last.drawn;
  const drawn = new Uint8Array(rows.length);
  for (let row = 0; row < drawn.length; row++) drawn[row] = Number(hasBlock(rows, regions, row, show));
  lastDrawn.set(rows, { regions, show, drawn });
  return drawn;
}

function listRows(highlighted: Uint8Array, drawn: Uint8Array, count: number): Uint32Array {
  const listed = new Uint32Array(count);
  let at = 0;
  for (let row = 0; row < drawn.length; row++) if ((highlighted[row] & drawn[row]) === 1) listed[at++] = row;
  return listed;
}

function sortByPlace(rows: Rows, regions: Regions, found: Uint32Array): Uint32Array {
  const bytes = new Float64Array(rows.length);
  for (const row of found) bytes[row] = regions.base[rows.region[row]] + rows.offset[row];
  return radixSortBy(rows.defined, radixSortBy(bytes, found));
}

/** Intersect two highlights; null highlights everything. */
export function intersectHighlights(one: Uint8Array | null, other: Uint8Array | null): Uint8Array | null {
  if (one === null || other === null) return one ?? other;
  return one.map((highlighted, row) => highlighted & other[row]);
}

/** Return the next or previous match, wrapping around; without a current match, the first from `position` on. */
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
