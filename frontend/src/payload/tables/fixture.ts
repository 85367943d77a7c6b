/** Encoder of the backend's table format, so that tests exercise the real decoder. */

type FixtureValues = readonly number[] | readonly string[];

export type Kind = "u8" | "i32" | "u32" | "f64";

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
      const encoded = texts.map((text) => new TextEncoder().encode(text));
      const ends = encoded.reduce<number[]>((all, text) => [...all, all[all.length - 1] + text.length], [0]);
      const dictionary = `${name}.${column}`;
      header.dictionaries[dictionary] = {
        length: texts.length,
        offsets: numbers("u32", ends),
        bytes: put(Uint8Array.from(encoded.flatMap((text) => [...text]))),
        size: ends[ends.length - 1],
      };
      const codes = values.map((text) => texts.indexOf(String(text)));
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
