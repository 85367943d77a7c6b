import { decodeTables } from "../tables/decode";
import { encodeTables, type FixtureColumns, type Kind } from "../tables/fixture";
import type { Table, Tables } from "../tables/tables";
import { readRows, type Rows } from "./rows";

export interface FixtureRow {
  name?: string;
  role?: number;
  size?: number;
  unpadded?: number;
  charge?: number;
  start?: number;
  end?: number;
  defined?: number;
  last_used?: number;
  op?: string;
  op_name?: string;
  source?: string;
  shape?: string;
  region?: number;
  offset?: number;
}

/** Build rows for tests. Defaults: everything allocated is requested and charged, lifetime [0, 10). */
export function fixtureRows(buffers: FixtureRow[]): Rows {
  const number = (
    kind: Kind,
    value: (buffer: FixtureRow, row: number) => number,
  ): FixtureColumns[string] => ({
    kind,
    values: buffers.map(value),
  });
  const text = (value: (buffer: FixtureRow) => string | undefined): FixtureColumns[string] => ({
    kind: "text",
    values: buffers.map((buffer) => value(buffer) ?? ""),
  });
  const size = (buffer: FixtureRow): number => buffer.size ?? 0;
  const tables: Tables = decodeTables(
    encodeTables(
      {},
      {
        rows: {
          id: number("f64", (_, row) => row),
          name: text((buffer) => buffer.name),
          op: text((buffer) => buffer.op),
          op_name: text((buffer) => buffer.op_name),
          source: text((buffer) => buffer.source),
          shape: text((buffer) => buffer.shape),
          dtype: text(() => ""),
          role: number("u8", (buffer) => buffer.role ?? 8),
          size: number("f64", size),
          unpadded: number("f64", (buffer) => buffer.unpadded ?? size(buffer)),
          charge: number("f64", (buffer) => buffer.charge ?? size(buffer)),
          start: number("i32", (buffer) => buffer.start ?? 0),
          end: number("i32", (buffer) => buffer.end ?? 10),
          defined: number("i32", (buffer) => buffer.defined ?? buffer.start ?? 0),
          last_used: number("i32", (buffer) => buffer.last_used ?? (buffer.end ?? 10) - 1),
          region: number("i32", (buffer) => buffer.region ?? 0),
          offset: number("f64", (buffer) => buffer.offset ?? 0),
          canonical: number("i32", (_, row) => row),
        },
      },
    ),
  );
  return readRows(tables.table("rows"));
}

/** Build a table of regions with their ids and addresses. */
export function regionTable(regions: readonly { index: number; address: number }[]): Table {
  const column = (key: "index" | "address"): FixtureColumns[string] => ({
    kind: "f64",
    values: regions.map((region) => region[key]),
  });
  const columns = { index: column("index"), address: column("address") };
  return decodeTables(encodeTables({}, { regions: columns })).table("regions");
}
