import { TextColumn } from "./text_column";

/**
 * Binary responses of the backend: "TBM1", a JSON header, then little-endian columns aligned to 8 bytes.
 * Columns are views of the response's buffer; only whole numbers that are read as floating-point numbers are copied. Text is decoded on first use.
 */

export type Column = Uint8Array | Int32Array | Uint32Array | Float64Array;

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

  /** Return a column of numbers. Whole numbers may be sent in fewer bytes. */
  f64(name: string): Float64Array {
    const column = this.columns.get(name);
    return column instanceof Int32Array ? new Float64Array(column) : this.column(name, Float64Array);
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
