import { type Column, Table, Tables } from "./tables";
import { decoder, TextColumn, TextDictionary } from "./text_column";

interface ColumnHeader {
  type: "u8" | "i32" | "u32" | "f64";
  offset: number;
  dictionary?: string;
}

interface Header {
  meta: unknown;
  tables: Record<string, { length: number; columns: Record<string, ColumnHeader> }>;
  dictionaries: Record<string, { length: number; offsets: number; bytes: number; size: number }>;
}

const MAGIC = 0x314d4254; // "TBM1", little-endian

/** Decode a response. Throws an Error if the data is malformed or truncated. */
export function decodeTables(answer: ArrayBuffer): Tables {
  const view = new DataView(answer);
  if (answer.byteLength < 8 || view.getUint32(0, true) !== MAGIC)
    throw new Error(
      "The response is not in the table format. Check that the backend and this page have the same version.",
    );
  const body = 8 + view.getUint32(4, true);
  const header = JSON.parse(decoder.decode(new Uint8Array(answer, 8, body - 8))) as Header;
  const dictionaries = new Map<string, TextDictionary>();
  for (const [name, { length, offsets, bytes, size }] of Object.entries(header.dictionaries))
    dictionaries.set(
      name,
      new TextDictionary(
        new Uint32Array(answer, body + offsets, length + 1),
        new Uint8Array(answer, body + bytes, size),
      ),
    );
  const tables = new Map<string, Table>();
  for (const [name, table] of Object.entries(header.tables)) {
    const columns = new Map<string, Column | TextColumn>();
    for (const [column, entry] of Object.entries(table.columns))
      columns.set(column, readColumn(answer, body, table.length, entry, dictionaries));
    tables.set(name, new Table(name, table.length, columns));
  }
  return new Tables(header.meta, tables);
}

function readColumn(
  answer: ArrayBuffer,
  body: number,
  length: number,
  { type, offset, dictionary }: ColumnHeader,
  dictionaries: ReadonlyMap<string, TextDictionary>,
): Column | TextColumn {
  if (dictionary !== undefined) {
    const text = dictionaries.get(dictionary);
    if (text === undefined) throw new Error(`The response has no dictionary ${dictionary}.`);
    // Codes are read as unsigned, so -1 (no text) lies outside every dictionary.
    return new TextColumn(new Uint32Array(answer, body + offset, length), text);
  }
  switch (type) {
    case "u8":
      return new Uint8Array(answer, body + offset, length);
    case "i32":
      return new Int32Array(answer, body + offset, length);
    case "u32":
      return new Uint32Array(answer, body + offset, length);
    case "f64":
      return new Float64Array(answer, body + offset, length);
  }
}
