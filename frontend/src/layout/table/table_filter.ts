import { compileSearch } from "../../base/search";
import { parseBytes } from "../../base/units";
import type { Rows } from "../../payload/recording/rows";
import type { TextColumn } from "../../payload/tables/text_column";

export interface FilteredRows {
  rows: Uint32Array;
  /** What could not be read as typed, in words for the page; the filter then did without it. */
  errors: string[];
}

/** Rows that hold the searched text in any of their texts and are of the size asked for. */
export function filterRows(rows: Rows, selected: Uint32Array, search: string, size: string): FilteredRows {
  const errors: string[] = [];
  const sizeTest = parseSizeFilter(size);
  if (sizeTest === null) errors.push(`“${size.trim()}” is no size; write >1MiB, <=512 KiB or 1MiB..2GiB.`);
  const found = compileSearch(search);
  if (found.error !== null) errors.push(`Looked for as plain text, since ${found.error.toLowerCase()}.`);
  if (found.empty && size.trim() === "") return { rows: selected, errors };

  const { name, op_name, source, shape, op, dtype, stack, step } = rows;
  const texts = [name, op_name, source, shape, op, dtype, stack, step].map((column) =>
    matchOncePerText(column, found.matches),
  );
  const matches = (row: number): boolean => found.empty || texts.some((text) => text(row));
  return {
    rows: selected.filter((row) => (sizeTest === null || sizeTest(rows.size[row])) && matches(row)),
    errors,
  };
}

/** Asks once per distinct text of a column, however many rows show it. */
function matchOncePerText(column: TextColumn, matches: (text: string) => boolean): (row: number) => boolean {
  const known = new Map<number, boolean>();
  return (row) => {
    const code = column.codes[row];
    let answer = known.get(code);
    if (answer === undefined) {
      answer = matches(column.at(row));
      known.set(code, answer);
    }
    return answer;
  };
}

/**
 * A test of bytes from what people write: ">1MiB", "<= 512 KiB", "1MiB..2GiB" (both included), "64k" (that much or
 * more). Null when it reads as none of these; the empty text lets everything through.
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
  switch (compared[1]) {
    case "<":
      return (bytes) => bytes < limit;
    case "<=":
    case "≤":
      return (bytes) => bytes <= limit;
    case ">":
      return (bytes) => bytes > limit;
    case "=":
      return (bytes) => bytes === limit;
    default:
      return (bytes) => bytes >= limit;
  }
}
