import type { Search } from "../../base/search";
import { parseBytes } from "../../base/units";
import type { Rows } from "../../payload/recording/rows";
import type { PackedTexts, TextColumn } from "../../payload/tables/text_column";
import { matchingEntries } from "../../payload/tables/text_search";

/** A parsed search and size filter. Invalid input is reported in `errors`. */
interface Filters {
  text: Search;
  matchesSize: (bytes: number) => boolean;
  errors: string[];
}

/** Combine a search with a size filter. An invalid size accepts all sizes. */
export function parseFilters(text: Search, size: string): Filters {
  const errors: string[] = [];
  const sizeFilter = parseSizeFilter(size);
  if (sizeFilter === null)
    errors.push(`“${size.trim()}” is not a size. Examples: >1MiB, <=512 KiB, 1MiB..2GiB.`);
  if (text.error !== null) errors.push(`Searching as plain text: ${text.error}.`);
  return { text, matchesSize: sizeFilter ?? (() => true), errors };
}

interface FilteredRows {
  rows: Uint32Array;
  /** Messages on invalid input, which the filter ignores. */
  errors: string[];
}

/**
 * Return the rows that contain the search in any of their texts and match the size filter. Rows with a 1 in `found`
 * match the search, too.
 */
export function filterRows(
  rows: Rows,
  selected: Uint32Array,
  search: Search,
  size: string,
  found: Uint8Array | null = null,
): FilteredRows {
  const { text, matchesSize, errors } = parseFilters(search, size);
  if (text.empty && size.trim() === "") return { rows: selected, errors };

  const marked = text.empty ? null : markMatches(rows, text);
  const matches = (row: number): boolean => marked === null || marked[row] === 1 || found?.[row] === 1;
  return {
    rows: selected.filter((row) => matchesSize(rows.size[row]) && matches(row)),
    errors,
  };
}

/** Return 1 for each row that contains the search in any of its texts. */
export function markMatches(rows: Rows, search: Search): Uint8Array {
  const marked = new Uint8Array(rows.length);
  for (const { codes, dictionary } of new Set(searchedColumns(rows))) {
    const found = matchingEntries(dictionary, search);
    const none = Number(search.matches(""));
    if (none === 0 && !found.includes(1)) continue;
    for (let row = 0; row < marked.length; row++)
      marked[row] |= codes[row] < found.length ? found[codes[row]] : none;
  }
  return marked;
}

/** Prepare the texts of rows, so that the first letter of a search is as fast as the next. */
export function prepareSearch(rows: Rows): void {
  for (const { dictionary } of searchedColumns(rows)) dictionary.lowerCase();
}

/** Return the searched texts of rows. */
export function rowTexts(rows: Rows): PackedTexts[] {
  return [...new Set(searchedColumns(rows).map(({ dictionary }) => dictionary))].map(({ packed }) => packed);
}

function searchedColumns(rows: Rows): TextColumn[] {
  const { name, op_name, copied, source, shape, op, dtype, stack, step } = rows;
  return [name, op_name, copied, source, shape, op, dtype, stack, step];
}

/**
 * Parse a size filter: ">1MiB", "<= 512 KiB", "1MiB..2GiB" (inclusive), "64k" (at least). Null if the text is
 * invalid; the empty text accepts all sizes.
 */
export function parseSizeFilter(text: string): ((bytes: number) => boolean) | null {
  if (text.trim() === "") return () => true;
  const range = /^(.+?)(?:\.\.|…|–)(.+)$/.exec(text);
  if (range !== null) {
    const [least, most] = [parseBytes(range[1]), parseBytes(range[2])];
    return least === null || most === null ? null : (bytes) => least <= bytes && bytes <= most;
  }
  const compared = /^\s*(<=|>=|≤|≥|<|>|=)?(.*)$/.exec(text);
  const limit = parseBytes(compared?.[2] ?? "");
  if (compared === null || limit === null) return null;
  const filters: Partial<Record<string, (bytes: number) => boolean>> = {
    "<": (bytes) => bytes < limit,
    "<=": (bytes) => bytes <= limit,
    "≤": (bytes) => bytes <= limit,
    ">": (bytes) => bytes > limit,
    "=": (bytes) => bytes === limit,
  };
  return filters[compared[1]] ?? ((bytes) => bytes >= limit);
}
