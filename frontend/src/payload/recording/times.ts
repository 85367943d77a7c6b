import type { ColumnsOf, Table, Tables } from "../tables/tables";

const POSITION_COLUMNS = {
  /** Seconds of one run, measured where that is known of the program, else estimated. */
  seconds: "f64",
  /** NaN where unknown. */
  estimated: "f64",
  measured: "f64",
  /** The mean time on the slowest device, divided by that on the fastest. */
  imbalance: "f64",
  bound: "text",
} as const;

const ROW_COLUMNS = { byte_seconds: "f64", unused: "f64" } as const;

/** Times of a program's instructions, and how long its buffers are held; all in seconds of one run. */
export interface TimeTables {
  positions: ColumnsOf<typeof POSITION_COLUMNS> & { length: number };
  rows: ColumnsOf<typeof ROW_COLUMNS> & { length: number };
}

/** Read the response of api/time_tables; null where no times are known. */
export function readTimeTables(tables: Tables): TimeTables | null {
  const positions: Table = tables.table("positions");
  if (positions.length === 0) return null;
  return { positions: positions.read(POSITION_COLUMNS), rows: tables.table("rows").read(ROW_COLUMNS) };
}
