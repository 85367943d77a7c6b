import type { Table } from "../tables/tables";
import { blankColumn, type TextColumn } from "../tables/text_column";
import { sizeColors } from "./size_colors";

/** Allocations as columns, indexed by row number. Meanings and units are those of api/rows. */
export interface Rows {
  length: number;
  id: Float64Array;
  name: TextColumn;
  op: TextColumn;
  op_name: TextColumn;
  /** Op_name of the copied value, for copies without one of their own; trees place them there. */
  copied: TextColumn;
  source: TextColumn;
  shape: TextColumn;
  dtype: TextColumn;
  /**
   * Allocators only: name of the call stack, with one dictionary entry for each stack, and the step of the
   * allocation.
   */
  stack: TextColumn;
  step: TextColumn;
  role: Uint8Array;
  /** Roles are not known yet: the first view of a large program. All rows, which load next, have them. */
  roles_follow: boolean;
  /** Color number in base/colors.ts: by role, or by size if no role is known. */
  color: Uint8Array;
  size: Float64Array;
  unpadded: Float64Array;
  charge: Float64Array;
  start: Int32Array;
  end: Int32Array;
  defined: Int32Array;
  last_used: Int32Array;
  region: Int32Array;
  offset: Float64Array;
  canonical: Int32Array;
}

/** Return the name of a row; empty if unknown. Allocations older than the recording share one name. */
export function rowName({ name, start, defined }: Rows, row: number): string {
  return name.at(row) || (start[row] < 0 && defined[row] < 0 ? "live before the recording" : "");
}

/** Return the text columns of rows without texts. */
export function blankTexts(length: number) {
  const blank = blankColumn(length);
  return {
    name: blank,
    op: blank,
    op_name: blank,
    copied: blank,
    source: blank,
    shape: blank,
    dtype: blank,
    stack: blank,
    step: blank,
  };
}

export function readRows(table: Table): Rows {
  const columns = readColumns(table);
  return { ...columns, color: rowColors(columns) };
}

/** Color by role if any role is known or follows, otherwise by size. */
export function rowColors(
  rows: Pick<Rows, "length" | "role" | "roles_follow" | "size" | "start">,
): Uint8Array {
  return rows.roles_follow || rows.role.some((role) => role !== 0) ? rows.role : sizeColors(rows);
}

function readColumns(table: Table): Omit<Rows, "color"> {
  return {
    length: table.length,
    id: table.f64("id"),
    name: table.text("name"),
    op: table.text("op"),
    op_name: table.text("op_name"),
    copied: table.has("copied") ? table.text("copied") : blankColumn(table.length),
    source: table.text("source"),
    shape: table.text("shape"),
    dtype: table.text("dtype"),
    stack: table.has("stack") ? table.text("stack") : blankColumn(table.length),
    step: blankColumn(table.length),
    role: table.has("role") ? table.u8("role") : new Uint8Array(table.length),
    roles_follow: !table.has("role"),
    size: table.f64("size"),
    unpadded: table.f64("unpadded"),
    charge: table.f64("charge"),
    start: table.i32("start"),
    end: table.i32("end"),
    defined: table.i32("defined"),
    last_used: table.i32("last_used"),
    region: table.i32("region"),
    offset: table.f64("offset"),
    canonical: table.i32("canonical"),
  };
}
