import type { Rows } from "../../payload/recording/rows";
import type { GroupKey } from "./grouping";
import { groupRows } from "./grouping";

/** Smaller buffers are folded into one line. This is XProf's threshold, so that both tables match. */
export const SMALL_BYTES = 16 * 1024;

/** One line of the table: a row, or a heading that expands and collapses. */
export type TableLine =
  | { kind: "row"; row: number }
  | {
      kind: "group";
      key: string;
      label: string;
      count: number;
      bytes: number;
      requested: number;
      open: boolean;
    }
  | { kind: "small"; key: string; count: number; bytes: number; open: boolean };

export interface Folding {
  /** One heading for each group, largest first. */
  by: GroupKey;
  /** Whether small rows are folded into one line. */
  foldsSmall: boolean;
  isOpen: (kind: "group" | "small", key: string) => boolean;
}

/** Lay out sorted rows as the lines of a table. */
export function tableLines(rows: Rows, sorted: Uint32Array, folding: Folding): TableLine[] {
  if (folding.by === "none") return foldSmallRows(rows, sorted, "small", folding);
  const lines: TableLine[] = [];
  for (const { key, label, rows: members, bytes, requested } of groupRows(rows, sorted, folding.by)) {
    const open = folding.isOpen("group", key);
    lines.push({ kind: "group", key, label, count: members.length, bytes, requested, open });
    if (open) for (const line of foldSmallRows(rows, members, `small-${key}`, folding)) lines.push(line);
  }
  return lines;
}

/** Return the large rows, then a line for the small rows, followed by these rows if it is expanded. */
function foldSmallRows(
  rows: Rows,
  sorted: Iterable<number>,
  key: string,
  { foldsSmall, isOpen }: Folding,
): TableLine[] {
  const lines: TableLine[] = [];
  const small: number[] = [];
  let bytes = 0;
  for (const row of sorted) {
    if (!foldsSmall || rows.size[row] >= SMALL_BYTES) lines.push({ kind: "row", row });
    else {
      small.push(row);
      bytes += rows.charge[row];
    }
  }
  if (small.length === 0) return lines;
  // A heading over a single row would hide it and save no space.
  const open = small.length === 1 || isOpen("small", key);
  if (small.length > 1) lines.push({ kind: "small", key, count: small.length, bytes, open });
  if (open) for (const row of small) lines.push({ kind: "row", row });
  return lines;
}
