import { emptyColumns, emptyTable, type Table, type Tables } from "../tables/tables";
import { PROGRAM_COLUMNS, type RecordingData } from "./recording";
import { type Columns, mapColumns, REGION_COLUMNS, type Rows, withColors } from "./rows";

/** Response of api/lifetimes: all rows without names, places and other details, which take longer to read. */
export function readLifetimes(tables: Tables): RecordingData {
  const rows = readRows(tables.table("rows"));
  const { positions } = tables.meta as { positions: number };
  return {
    rows,
    regions: { ...emptyTable(REGION_COLUMNS), bounded: true },
    addresses: { region: () => NaN, address: () => NaN },
    program: {
      ...emptyTable(PROGRAM_COLUMNS),
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
  const unknown = new Float64Array(length).fill(-1);
  const known: Partial<Columns> = {
    ...{ start, end, charge, size, requested: size, id: unknown, offset: unknown, role: table.u8("role") },
    defined: table.has("defined") ? table.i32("defined") : start,
    last_used: table.has("last_used") ? table.i32("last_used") : end.map((position) => position - 1),
    canonical: Int32Array.from(unknown.keys()),
  };
  const empty = emptyColumns(length);
  return withColors({
    ...mapColumns((name, kind) => known[name] ?? empty(kind)),
    ...{ length, roles_follow: false },
  });
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
 * Return all data with the columns of `early` in place of equal ones, so that layouts made of them stay valid. If the
 * rows differ, for example because the file has changed, `all` is returned.
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
