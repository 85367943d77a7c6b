import { formatBytes } from "../../base/units";
import { ROLES } from "../../payload/generated/constants";
import type { Rows } from "../../payload/recording/rows";
import { hashLabel } from "../url_values";

/** What rows can be grouped by: a column of texts, their role, or their size and role. */
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
  "size",
] as const;
export type GroupKey = (typeof GROUP_KEYS)[number];
type TextKey = Exclude<GroupKey, "none" | "role" | "size">;

const isText = (key: GroupKey): key is TextKey => key !== "none" && key !== "role" && key !== "size";

/** Return the groupings that the rows have values for. */
export function groupKeys(rows: Rows): GroupKey[] {
  return GROUP_KEYS.filter((key) => {
    if (key === "role") return rows.role.some((role) => role !== 0);
    return key === "name" || !isText(key) || !rows[key].blank;
  });
}

/** Of a program, names are those of single instructions. */
const FIRST_OF_PROGRAM = ["source", "op_name"] as const;
const FIRST_OF_ALLOCATOR = ["source", "op_name", "name", "stack", "step"] as const;

/** Return the first grouping, from source lines on, that most bytes have a value for, and that tells them apart. */
export function firstGroup(rows: Rows, allocator: boolean): GroupKey {
  const charged = rows.charge.reduce((sum, bytes) => sum + bytes, 0);
  const covers = (key: TextKey): boolean => {
    let bytes = 0;
    for (let row = 0; row < rows.length; row++) if (rows[key].at(row) !== "") bytes += rows.charge[row];
    return 2 * bytes > charged && (rows.length < 2 || rows[key].constant === null);
  };
  const found = (allocator ? FIRST_OF_ALLOCATOR : FIRST_OF_PROGRAM).find(covers);
  return found ?? (allocator ? "size" : rows.role.some((role) => role !== 0) ? "role" : "none");
}

interface Group {
  /** Unique among the groups of one grouping. */
  key: string;
  label: string;
  /** False: the rows have no value, and are grouped by size and role. */
  known: boolean;
  rows: number[];
  bytes: number;
  requested: number;
}

/**
 * Group rows, most bytes first; rows keep their order within a group. Rows without a value are grouped by the next
 * best thing that is known of all: their size and role, and of an allocator, whether they are older than the recording.
 */
export function groupRows(rows: Rows, selected: Iterable<number>, by: GroupKey, allocator: boolean): Group[] {
  const groups = new Map<number, Group>();
  for (const row of selected) {
    const code = codeOf(rows, row, by);
    let group = groups.get(code);
    if (group === undefined) {
      const label =
        code < 0 ? sizeLabel(rows, row, allocator && rows.start[row] < 0) : labelOf(rows, row, by);
      // Text codes differ between files and responses, so links identify groups by label.
      const mark = by === "role" ? code : hashLabel(label);
      const known = code >= 0 || by === "size";
      group = { key: `${by}-${mark}`, label, known, rows: [], bytes: 0, requested: 0 };
      groups.set(code, group);
    }
    group.rows.push(row);
    group.bytes += rows.charge[row];
    group.requested += Math.min(rows.requested[row], rows.charge[row]);
  }
  return [...groups.values()].sort((a, b) => b.bytes - a.bytes);
}

/** Return a number for a row's group; negative for a group by size and role. */
function codeOf(rows: Rows, row: number, by: GroupKey): number {
  if (by === "none") return 0;
  if (by === "role") return rows.role[row];
  if (isText(by) && rows[by].at(row) !== "") return rows[by].codes[row];
  return -1 - (2 * (256 * rows.size[row] + rows.role[row]) + Number(rows.start[row] < 0));
}

function labelOf(rows: Rows, row: number, by: GroupKey): string {
  if (by === "role") return ROLES[rows.role[row]];
  return isText(by) ? rows[by].at(row) : "";
}

/** Describe the rows of a size and a role: "2.00 MiB, activation". */
function sizeLabel({ size, role }: Rows, row: number, isOlder: boolean): string {
  const parts = [formatBytes(size[row])];
  if (role[row] !== 0) parts.push(ROLES[role[row]]);
  if (isOlder) parts.push("live before the recording");
  return parts.join(", ");
}

/** Smaller buffers are folded into one line. This is XProf's threshold, so that both tables match. */
const SMALL_BYTES = 16 * 1024;

/** One line of the table: a row, or a heading that expands and collapses. */
export type TableLine =
  | { kind: "row"; row: number }
  | ({ kind: "group"; count: number; open: boolean } & Omit<Group, "rows">)
  | { kind: "small"; key: string; count: number; bytes: number; open: boolean };

interface Folding {
  /** One heading for each group, largest first. */
  by: GroupKey;
  /** Of a program, small rows are folded into one line. */
  allocator: boolean;
  isOpen: (key: string) => boolean;
  /** Sort rows that are listed: those of open groups only, as there may be a million others. */
  sort: (rows: readonly number[]) => readonly number[];
}

/** Lay out rows as the lines of a table. */
export function tableLines(rows: Rows, selected: Uint32Array, folding: Folding): TableLine[] {
  const { by, allocator, isOpen, sort } = folding;
  if (by === "none") return foldSmallRows(rows, sort([...selected]), "small", folding);
  const lines: TableLine[] = [];
  for (const { rows: members, ...group } of groupRows(rows, selected, by, allocator)) {
    const open = isOpen(group.key);
    lines.push({ kind: "group", ...group, count: members.length, open });
    if (open)
      for (const line of foldSmallRows(rows, sort(members), `small-${group.key}`, folding)) lines.push(line);
  }
  return lines;
}

/** Return the large rows, then a line for the small rows, followed by these rows if it is expanded. */
function foldSmallRows(
  rows: Rows,
  sorted: readonly number[],
  key: string,
  { allocator, isOpen }: Folding,
): TableLine[] {
  const lines: TableLine[] = [];
  const small: number[] = [];
  let bytes = 0;
  for (const row of sorted) {
    if (allocator || rows.size[row] >= SMALL_BYTES) lines.push({ kind: "row", row });
    else {
      small.push(row);
      bytes += rows.charge[row];
    }
  }
  if (small.length === 0) return lines;
  // A heading over a single row would hide it and save no space.
  const open = small.length === 1 || isOpen(key);
  if (small.length > 1) lines.push({ kind: "small", key, count: small.length, bytes, open });
  if (open) for (const row of small) lines.push({ kind: "row", row });
  return lines;
}

/** Return the folder that all labels of files begin with, up to its slash; empty for a single label. */
export function commonFolder(labels: readonly string[]): string {
  if (labels.length < 2) return "";
  const [first] = labels;
  let length = first.lastIndexOf("/") + 1;
  while (length > 0 && !labels.every((label) => label.startsWith(first.slice(0, length))))
    length = first.lastIndexOf("/", length - 2) + 1;
  return first.slice(0, length);
}
