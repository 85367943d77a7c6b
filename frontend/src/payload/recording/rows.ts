import { FIRST_SIZE_COLOR, SIZE_COLORS } from "../../base/colors";
import { ARRAYS, OPTIONAL } from "../generated/columns";
import { type ColumnsOf, emptyColumns, mapSchema, type Table } from "../tables/tables";

export type ColumnName = keyof typeof ARRAYS;
export type TextName = {
  [Name in ColumnName]: (typeof ARRAYS)[Name] extends "text" ? Name : never;
}[ColumnName];
export type Columns = ColumnsOf<typeof ARRAYS>;

/** Allocations as columns, indexed by row number. */
export interface Rows extends Columns {
  length: number;
  /** Whether roles are not known yet, as in the first view of a large program. All rows, which load next, have them. */
  roles_follow: boolean;
  /** Color number in base/colors.ts: by role, or by size if no role is known. */
  color: Uint8Array;
}

/** Return the columns of rows, each made by a function. */
export const mapColumns = (make: Parameters<typeof mapSchema<typeof ARRAYS>>[1]): Columns =>
  mapSchema(ARRAYS, make);

/** Return the name of a row; empty if unknown. Allocations older than the recording share one name. */
export function rowName({ name, start, defined }: Rows, row: number): string {
  return name.at(row) || (start[row] < 0 && defined[row] < 0 ? "live before the recording" : "");
}

export function readRows(table: Table): Rows {
  const empty = emptyColumns(table.length);
  const columns = mapColumns((name, kind) =>
    OPTIONAL.has(name) && !table.has(name) ? empty(kind) : table[kind](name),
  );
  return withColors({ ...columns, length: table.length, roles_follow: !table.has("role") });
}

/** Return rows with their colors: by role if any role is known or follows, otherwise by size. */
export function withColors(rows: Omit<Rows, "color">): Rows {
  const hasRoles = rows.roles_follow || rows.role.some((role) => role !== 0);
  return { ...rows, color: hasRoles ? rows.role : sizeColors(rows) };
}

/** Return size divided by requested bytes; 1 if nothing was requested. */
export function expansion(rows: Rows, row: number): number {
  return rows.requested[row] > 0 ? rows.size[row] / rows.requested[row] : 1;
}

/**
 * Return how long a row was live within the recording: in ns if `times` contains the positions' times,
 * otherwise in positions.
 */
export function rowLifetime(rows: Rows, row: number, times: Float64Array | null): number {
  if (times === null) return rows.end[row] - rows.start[row];
  const last = times.length - 1;
  return times[Math.min(rows.end[row], last)] - times[Math.max(rows.start[row], 0)];
}

/** Return a color of the scale of sizes for each row. Color 0, gray, marks rows older than the recording. */
function sizeColors({ length, size, start }: Omit<Rows, "color">): Uint8Array {
  const colors = new Uint8Array(length);
  for (let row = 0; row < length; row++) if (start[row] >= 0) colors[row] = colorOfSize(size[row]);
  return colors;
}

/** The second color of the scale starts at 4 KiB, and each further one at four times as many bytes. */
function colorOfSize(bytes: number): number {
  const step = Math.floor(Math.log2(Math.max(bytes, 1)) / 2) - 5;
  return FIRST_SIZE_COLOR + Math.min(Math.max(step, 0), SIZE_COLORS - 1);
}

/** Columns of regions, and what each is an array of. */
export const REGION_COLUMNS = {
  /** Source's id: a number or an address. */
  index: "f64",
  /** First address; NaN if unknown. */
  address: "f64",
  kind: "text",
  size: "f64",
  /** Offset in bytes on the timeline's y axis. */
  base: "f64",
  temporary: "u8",
  /** The region exists at positions [start, end). */
  start: "i32",
  end: "i32",
} as const;

/** Buffer allocations or segments that contain the rows. */
export interface Regions extends ColumnsOf<typeof REGION_COLUMNS> {
  length: number;
  /** Whether regions end where the reserved memory ends. If not, bytes that no row ever used may belong to anything. */
  bounded: boolean;
}

/** Addresses of rows; NaN where unknown. */
export interface Addresses {
  /** Source's id of the row's region: the index of a buffer allocation, or the address of a segment. */
  region: (row: number) => number;
  address: (row: number) => number;
}

/** Read addresses of rows that come without their regions. */
export function addressesFromColumns(rows: Table): Addresses {
  const [region, address] = [rows.f64("region_index"), rows.f64("address")];
  return { region: (row) => region[row], address: (row) => address[row] };
}

export function addressesFromRegions(
  { region, offset }: { region: Int32Array; offset: Float64Array },
  regions: Table,
): Addresses {
  const [index, address] = [regions.f64("index"), regions.f64("address")];
  const base = (row: number): number => (region[row] >= 0 && offset[row] >= 0 ? address[region[row]] : NaN);
  return {
    // A row without an offset can be in any of an allocator's segments.
    region: (row) =>
      region[row] >= 0 && Number.isNaN(address[region[row]]) ? index[region[row]] : base(row),
    address: (row) => base(row) + offset[row],
  };
}
