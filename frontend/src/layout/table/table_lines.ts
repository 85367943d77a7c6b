import { ROLES } from "../../payload/generated/constants";
import type { Rows } from "../../payload/recording/rows";
import { hashLabel } from "../url_values";

/** Columns that rows can be grouped by. */
export const GROUP_KEYS = [
  "none",
  "name",
  "op_name",
  "op",
  "source",
  "stack",
  "step",
  "shape",
  "dtype",
  "role",
] as const;
export type GroupKey = (typeof GROUP_KEYS)[number];

/** Return the groupings that the rows have values for. */
export function groupKeys(rows: Rows): GroupKey[] {
  return GROUP_KEYS.filter((key) => {
    if (key === "none" || key === "name") return true;
    return key === "role" ? rows.role.some((role) => role !== 0) : !rows[key].blank;
  });
}

interface Group {
  /** Unique among the groups of one grouping. */
  key: string;
  label: string;
  rows: number[];
  bytes: number;
  requested: number;
}

const BEFORE = "live before the recording";
const UNNAMED = "none in the profile";

/**
 * Group rows, most bytes first; rows keep their order within a group. Nothing is known about rows older than
 * the recording, so they are one group, except when grouping by role.
 */
export function groupRows(rows: Rows, selected: Iterable<number>, by: GroupKey): Group[] {
  const groups = new Map<number, Group>();
  for (const row of selected) {
    const code = codeOf(rows, row, by);
    let group = groups.get(code);
    if (group === undefined) {
      const label = labelOf(rows, row, by);
      // Text codes differ between files and responses, so links identify groups by label.
      const mark = by === "role" || code < 0 ? code : hashLabel(label);
      group = { key: `${by}-${mark}`, label, rows: [], bytes: 0, requested: 0 };
      groups.set(code, group);
    }
    group.rows.push(row);
    group.bytes += rows.charge[row];
    group.requested += Math.min(rows.requested[row], rows.charge[row]);
  }
  return [...groups.values()].sort((a, b) => b.bytes - a.bytes);
}

function codeOf(rows: Rows, row: number, by: GroupKey): number {
  if (by === "none") return 0;
  if (by === "role") return rows.role[row];
  if (rows.start[row] < 0) return -1;
  return rows[by].at(row) === "" ? -2 : rows[by].codes[row];
}

function labelOf(rows: Rows, row: number, by: GroupKey): string {
  if (by === "none") return "";
  if (by === "role") return ROLES[rows.role[row]];
  if (rows.start[row] < 0) return BEFORE;
  const text = rows[by].at(row);
  return text === "" ? UNNAMED : text;
}

/** Smaller buffers are folded into one line. This is XProf's threshold, so that both tables match. */
const SMALL_BYTES = 16 * 1024;

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

interface Folding {
  /** One heading for each group, largest first. */
  by: GroupKey;
  /** Whether small rows are folded into one line. */
  foldsSmall: boolean;
  isOpen: (kind: "group" | "small", key: string) => boolean;
}

/** Lay out sorted rows as the lines of a table. */
export function tableLines(rows: Rows, sorted: Iterable<number>, folding: Folding): TableLine[] {
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
