import { blankColumn } from "../tables/text_column";
import type { Table, Tables } from "../tables/tables";
import type { RecordingData } from "./recording";
import { blankTexts, rowColors, type Rows } from "./rows";

/** Response of api/lifetimes: all rows without names, places and other details, which take longer to read. */
export function readLifetimes(tables: Tables): RecordingData {
  const rows = readRows(tables.table("rows"));
  const none = blankColumn(0);
  const { positions } = tables.meta as { positions: number };
  return {
    rows,
    regions: {
      length: 0,
      index: new Float64Array(0),
      kind: none,
      size: new Float64Array(0),
      base: new Float64Array(0),
      temporary: new Uint8Array(0),
      start: new Int32Array(0),
      end: new Int32Array(0),
      bounded: true,
    },
    addresses: { region: () => NaN, address: () => NaN },
    program: {
      length: 0,
      name: none,
      op: none,
      op_name: none,
      computation: none,
      time_ns: null,
      unexplained: readUnexplained(tables.table("unexplained"), positions),
    },
    spans: null,
  };
}

function readRows(table: Table): Rows {
  const { length } = table;
  const [start, end, charge] = [table.i32("start"), table.i32("end"), table.f64("charge")];
  const size = table.has("size") ? table.f64("size") : charge;
  const role = table.u8("role");
  const unknown = new Float64Array(length).fill(-1);
  const numbers = new Int32Array(length);
  const last_used = table.has("last_used") ? table.i32("last_used") : new Int32Array(length);
  for (let row = 0; row < length; row++) numbers[row] = row;
  if (!table.has("last_used")) for (let row = 0; row < length; row++) last_used[row] = end[row] - 1;
  return {
    length,
    id: unknown,
    ...blankTexts(length),
    role,
    roles_follow: false,
    color: rowColors({ length, role, roles_follow: false, size, start }),
    size,
    unpadded: size,
    charge,
    start,
    end,
    defined: table.has("defined") ? table.i32("defined") : start,
    last_used,
    region: new Int32Array(length),
    offset: unknown,
    canonical: numbers,
  };
}

/** Return the bytes at each position that no row explains, from stretches of equal bytes; null if there are none. */
function readUnexplained(stretches: Table, positions: number): Float64Array | null {
  if (stretches.length === 0) return null;
  const [start, end, bytes] = [stretches.i32("start"), stretches.i32("end"), stretches.f64("bytes")];
  const unexplained = new Float64Array(positions);
  for (let i = 0; i < stretches.length; i++) unexplained.fill(bytes[i], start[i], end[i]);
  return unexplained;
}

/** The columns that decide where a row's block is, and its color. */
const DRAWN = ["role", "color", "size", "charge", "start", "end", "defined", "last_used"] as const;

/**
 * Return all data with the columns of `early` in place of equal ones, so that what was made of them is known to be
 * right. Without equal rows, for example of a file that has changed, `all` is returned.
 */
export function keepColumns(all: RecordingData, early: RecordingData | null): RecordingData {
  const { rows } = all;
  if (early === null || DRAWN.some((name) => !areEqual(rows[name], early.rows[name]))) return all;
  const { role, color, size, charge, start, end, defined, last_used } = early.rows;
  return { ...all, rows: { ...rows, role, color, size, charge, start, end, defined, last_used } };
}

function areEqual(one: ArrayLike<number>, other: ArrayLike<number>): boolean {
  if (one.length !== other.length) return false;
  for (let i = 0; i < one.length; i++) if (one[i] !== other[i]) return false;
  return true;
}
