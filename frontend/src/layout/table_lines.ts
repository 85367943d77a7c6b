import type { Rows } from "../payload/recording";

/** Buffers below this are folded into one line: XProf's threshold, so that the two tables read alike. */
export const SMALL_BYTES = 16 * 1024;

/** One line of the table: a buffer, or a heading that opens and closes. */
export type Line =
  | { kind: "row"; row: number }
  | { kind: "group"; key: string; role: number; count: number; bytes: number; open: boolean }
  | { kind: "small"; key: string; count: number; bytes: number; open: boolean };

export interface Folding {
  /** One heading per role, largest first. */
  grouped: boolean;
  /** Keys of the groups that are closed. */
  closed: ReadonlySet<string>;
  /** Keys of the folds of small buffers that are open. */
  opened: ReadonlySet<string>;
}

/** Lays sorted rows out as the lines of a table. */
export function tableLines(rows: Rows, sorted: Uint32Array, { grouped, closed, opened }: Folding): Line[] {
  if (!grouped) return withFold(rows, sorted, "small", opened);
  const lines: Line[] = [];
  for (const group of groupsOf(rows, sorted)) {
    const key = `role-${group.role}`;
    const open = !closed.has(key);
    lines.push({ kind: "group", key, role: group.role, count: group.rows.length, bytes: group.bytes, open });
    if (open) for (const line of withFold(rows, group.rows, `small-${group.role}`, opened)) lines.push(line);
  }
  return lines;
}

function groupsOf(rows: Rows, sorted: Uint32Array): { role: number; rows: number[]; bytes: number }[] {
  const groups = new Map<number, { role: number; rows: number[]; bytes: number }>();
  for (const row of sorted) {
    const role = rows.role[row];
    const group = groups.get(role) ?? { role, rows: [], bytes: 0 };
    group.rows.push(row);
    group.bytes += rows.charge[row];
    groups.set(role, group);
  }
  return [...groups.values()].sort((a, b) => b.bytes - a.bytes);
}

/** The large rows, then one line for the small ones, and these below it when it is open. */
function withFold(rows: Rows, sorted: Iterable<number>, key: string, opened: ReadonlySet<string>): Line[] {
  const lines: Line[] = [];
  const small: number[] = [];
  let bytes = 0;
  for (const row of sorted) {
    if (rows.size[row] >= SMALL_BYTES) lines.push({ kind: "row", row });
    else {
      small.push(row);
      bytes += rows.charge[row];
    }
  }
  if (small.length === 0) return lines;
  // A heading over a single row would hide it to save nothing.
  const open = small.length === 1 || opened.has(key);
  if (small.length > 1) lines.push({ kind: "small", key, count: small.length, bytes, open });
  if (open) for (const row of small) lines.push({ kind: "row", row });
  return lines;
}
