import { blankColumn, decoder, TextColumn, TextDictionary } from "./text_column";

/**
 * Binary responses of the backend: "TBM1", a JSON header, then little-endian columns aligned to 8 bytes.
 * Columns are views of the response's buffer; only whole numbers that are read as floating-point numbers are
 * copied. Text is decoded on first use.
 */

type Column = Uint8Array | Int32Array | Uint32Array | Float64Array;

/** Kinds of columns, and the arrays into which they are read. */
interface Arrays {
  f64: Float64Array;
  i32: Int32Array;
  u32: Uint32Array;
  u8: Uint8Array;
  text: TextColumn;
}

/** Kinds of a table's columns by name, from which its type and its reader follow. */
type Schema = Readonly<Record<string, keyof Arrays>>;

export type ColumnsOf<S extends Schema> = { [Name in keyof S]: Arrays[S[Name]] };

/** Return the columns of a schema, each made by a function. */
export function mapSchema<S extends Schema>(
  schema: S,
  make: (name: keyof S & string, kind: keyof Arrays) => Arrays[keyof Arrays],
): ColumnsOf<S> {
  const made = Object.entries(schema).map(([name, kind]) => [name, make(name, kind)] as const);
  return Object.fromEntries(made) as unknown as ColumnsOf<S>;
}

const ARRAYS = { f64: Float64Array, i32: Int32Array, u32: Uint32Array, u8: Uint8Array };

/** Return a function that makes columns of zeros; columns of empty texts are shared. */
export function emptyColumns(length: number): (kind: keyof Arrays) => Arrays[keyof Arrays] {
  const blank = blankColumn(length);
  return (kind) => (kind === "text" ? blank : new ARRAYS[kind](length));
}

/** Return a table without rows. */
export function emptyTable<S extends Schema>(schema: S): ColumnsOf<S> & { length: number } {
  const empty = emptyColumns(0);
  return { ...mapSchema(schema, (_, kind) => empty(kind)), length: 0 };
}

/** One table of a response. Typed access reports columns that are missing or have another type. */
export class Table {
  constructor(
    readonly name: string,
    readonly length: number,
    private readonly columns: ReadonlyMap<string, Column | TextColumn>,
  ) {}

  private column<C>(name: string, kind: abstract new (...parameters: never[]) => C): C {
    const column = this.columns.get(name);
    if (column instanceof kind) return column;
    throw new Error(`Response table ${this.name} has no column ${name} of type ${kind.name}.`);
  }

  /** Return all columns of a schema. */
  read<S extends Schema>(schema: S): ColumnsOf<S> & { length: number } {
    return { ...mapSchema(schema, (name, kind) => this[kind](name)), length: this.length };
  }

  /** Return a column of numbers. Whole numbers may be sent in fewer bytes. */
  f64(name: string): Float64Array {
    const column = this.columns.get(name);
    return column instanceof Int32Array ? new Float64Array(column) : this.column(name, Float64Array);
  }

  i32 = (name: string): Int32Array => this.column(name, Int32Array);
  u32 = (name: string): Uint32Array => this.column(name, Uint32Array);
  u8 = (name: string): Uint8Array => this.column(name, Uint8Array);
  text = (name: string): TextColumn => this.column(name, TextColumn);

  has(name: string): boolean {
    return this.columns.has(name);
  }
}

/** Return all texts of a column. */
export function readTexts(table: Table, name: string): string[] {
  const column = table.text(name);
  return Array.from({ length: table.length }, (_, row) => column.at(row));
}

export class Tables {
  constructor(
    /** Callers know its shape from the route. */
    readonly meta: unknown,
    private readonly tables: ReadonlyMap<string, Table>,
  ) {}

  table(name: string): Table {
    const table = this.tables.get(name);
    if (table === undefined) throw new Error(`The response has no table ${name}.`);
    return table;
  }

  has(name: string): boolean {
    return this.tables.has(name);
  }
}

interface ColumnHeader {
  type: keyof typeof ARRAYS;
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
  return new ARRAYS[type](answer, body + offset, length);
}
