/**
 * The binary answer of the backend: "TBM1", a JSON header, then little-endian columns aligned to 8 bytes. Columns
 * are views of the answer's own memory; nothing is copied, and text is decoded only where it is looked at.
 */

export type Column = Uint8Array | Int32Array | Uint32Array | Float64Array;

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

/** Interned text: entry i is decoded when first asked for. */
export class TextDictionary {
  private readonly decoded: string[] = [];

  constructor(
    private readonly offsets: Uint32Array,
    private readonly bytes: Uint8Array,
  ) {}

  get length(): number {
    return this.offsets.length - 1;
  }

  /** The same with one entry more. */
  with(text: string): TextDictionary {
    const added = new TextEncoder().encode(text);
    const bytes = new Uint8Array(this.bytes.length + added.length);
    bytes.set(this.bytes);
    bytes.set(added, this.bytes.length);
    return new TextDictionary(Uint32Array.from([...this.offsets, bytes.length]), bytes);
  }

  at(entry: number): string {
    return (this.decoded[entry] ??= decoder.decode(
      this.bytes.subarray(this.offsets[entry], this.offsets[entry + 1]),
    ));
  }
}

/** A dictionary of these texts. */
export function dictionaryOf(texts: readonly string[]): TextDictionary {
  const encoded = texts.map((text) => new TextEncoder().encode(text));
  const offsets = new Uint32Array(texts.length + 1);
  encoded.forEach((bytes, i) => (offsets[i + 1] = offsets[i] + bytes.length));
  const bytes = new Uint8Array(offsets[texts.length]);
  encoded.forEach((text, i) => bytes.set(text, offsets[i]));
  return new TextDictionary(offsets, bytes);
}

const decoder = new TextDecoder();

/** A column of text: dictionary entry numbers, one per row. */
export class TextColumn {
  constructor(
    readonly codes: Uint32Array,
    readonly dictionary: TextDictionary,
  ) {}

  get length(): number {
    return this.codes.length;
  }

  /** Whether no row has a text. */
  get blank(): boolean {
    return this.codes.every((_, row) => this.at(row) === "");
  }

  /** The text of a row; a code outside the dictionary (-1 is all bits set) is the empty text. */
  at(row: number): string {
    const code = this.codes[row];
    return code < this.dictionary.length ? this.dictionary.at(code) : "";
  }
}

/** A code outside every dictionary. */
export const NO_TEXT = 0xffffffff;

/** A column without a text in any row. */
export function blankColumn(length: number): TextColumn {
  return new TextColumn(new Uint32Array(length).fill(NO_TEXT), dictionaryOf([]));
}

/** One table of an answer, with typed access that says which column is missing or of another type. */
export class Table {
  constructor(
    readonly name: string,
    readonly length: number,
    private readonly columns: ReadonlyMap<string, Column | TextColumn>,
  ) {}

  private column<C>(name: string, kind: abstract new (...parameters: never[]) => C): C {
    const column = this.columns.get(name);
    if (column instanceof kind) return column;
    throw new Error(`The answer's table ${this.name} has no column ${name} of type ${kind.name}.`);
  }

  f64(name: string): Float64Array {
    return this.column(name, Float64Array);
  }

  i32(name: string): Int32Array {
    return this.column(name, Int32Array);
  }

  u32(name: string): Uint32Array {
    return this.column(name, Uint32Array);
  }

  u8(name: string): Uint8Array {
    return this.column(name, Uint8Array);
  }

  text(name: string): TextColumn {
    return this.column(name, TextColumn);
  }

  has(name: string): boolean {
    return this.columns.has(name);
  }
}

export class Tables {
  constructor(
    /** The caller knows its shape from the route it asked. */
    readonly meta: unknown,
    private readonly tables: ReadonlyMap<string, Table>,
  ) {}

  table(name: string): Table {
    const table = this.tables.get(name);
    if (table === undefined) throw new Error(`The answer has no table ${name}.`);
    return table;
  }

  has(name: string): boolean {
    return this.tables.has(name);
  }
}

/** Reads an answer. Throws an Error when it is not one or is cut short. */
export function decodeTables(answer: ArrayBuffer): Tables {
  const view = new DataView(answer);
  if (answer.byteLength < 8 || view.getUint32(0, true) !== MAGIC)
    throw new Error("The answer is not a table: is the backend of the same version as this page?");
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
    if (text === undefined) throw new Error(`The answer has no dictionary ${dictionary}.`);
    // Read as unsigned whichever they are: "none" then lies outside every dictionary.
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
