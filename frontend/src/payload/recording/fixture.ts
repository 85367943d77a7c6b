/** Rows and tables of tests, encoded as the backend does, so that tests exercise the real decoder. */

import { decodeTables, type Table, type Tables } from "../tables/tables";
import { dictionaryOf } from "../tables/text_column";
import { readRows, type Rows } from "./rows";

/** Encoder of the backend's table format, so that tests exercise the real decoder. */

type FixtureValues = readonly number[] | readonly string[];

type Kind = "u8" | "i32" | "u32" | "f64";

const ARRAYS = { u8: Uint8Array, i32: Int32Array, u32: Uint32Array, f64: Float64Array };

/** Columns by name. "text" columns take strings and become dictionaries. */
export type FixtureColumns = Record<string, { kind: Kind | "text"; values: FixtureValues }>;

export function encodeTables(meta: unknown, tables: Record<string, FixtureColumns>): ArrayBuffer {
  const parts: Uint8Array[] = [];
  let size = 0;
  const put = (part: Uint8Array): number => {
    const at = size;
    parts.push(part, new Uint8Array(-part.length & 7));
    size += part.length + (-part.length & 7);
    return at;
  };
  const numbers = (kind: Kind, values: Iterable<number>): number =>
    put(new Uint8Array(ARRAYS[kind].from(values).buffer));
  const header = { meta, tables: {} as Record<string, unknown>, dictionaries: {} as Record<string, unknown> };
  for (const [name, columns] of Object.entries(tables)) {
    const written: Record<string, unknown> = {};
    let length = 0;
    for (const [column, { kind, values }] of Object.entries(columns)) {
      length = values.length;
      if (kind !== "text") {
        written[column] = { type: kind, offset: numbers(kind, values.map(Number)) };
        continue;
      }
      const texts = [...new Set(values.map(String))];
      const { offsets, bytes } = dictionaryOf(texts).packed;
      const dictionary = `${name}.${column}`;
      header.dictionaries[dictionary] = {
        ...{ length: texts.length, size: bytes.length },
        ...{ offsets: numbers("u32", offsets), bytes: put(bytes) },
      };
      const code = new Map(texts.map((text, i) => [text, i]));
      const codes = values.map((text) => code.get(String(text)) ?? -1);
      written[column] = { type: "i32", offset: numbers("i32", codes), dictionary };
    }
    header.tables[name] = { length, columns: written };
  }
  const json = new TextEncoder().encode(JSON.stringify(header));
  const body = 8 + json.length + (-json.length & 7);
  const answer = new Uint8Array(body + size).fill(0x20, 8, body);
  answer.set(new TextEncoder().encode("TBM1"));
  new DataView(answer.buffer).setUint32(4, body - 8, true);
  answer.set(json, 8);
  let at = body;
  for (const part of parts) {
    answer.set(part, at);
    at += part.length;
  }
  return answer.buffer;
}

export interface FixtureRow {
  name?: string;
  role?: number;
  size?: number;
  requested?: number;
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
          requested: number("f64", (buffer) => buffer.requested ?? size(buffer)),
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
