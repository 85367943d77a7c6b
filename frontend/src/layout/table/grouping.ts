import type { Rows } from "../../payload/recording/rows";
import { ROLES } from "../../payload/generated/constants";
import { hashLabel } from "../url_values/expanded";

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

export interface Group {
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
    group.requested += Math.min(rows.unpadded[row], rows.charge[row]);
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
