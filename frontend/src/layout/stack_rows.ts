import type { Program, Rows } from "../payload/recording";
import { NO_TEXT, TextColumn } from "../payload/tables";

/** Positions from start to before end over which a figure stays the same. */
interface Stretch {
  start: number;
  end: number;
  bytes: number;
}

/** The stretches over which there are bytes, in order. */
export function stretchesOf(bytes: Float64Array): Stretch[] {
  const found: Stretch[] = [];
  for (let start = 0, end = 0; start < bytes.length; start = end) {
    while (end < bytes.length && bytes[end] === bytes[start]) end += 1;
    if (bytes[start] > 0) found.push({ start, end, bytes: bytes[start] });
  }
  return found;
}

/**
 * The rows, and after them one called `name` for each stretch of what no row explains: at every position they add up to what is in
 * use. Nothing but the bytes is known of those, so they have no address.
 */
export function withStack(rows: Rows, { unexplained }: Program, name: string): Rows {
  const stretches = unexplained === null ? [] : stretchesOf(unexplained);
  if (stretches.length === 0) return rows;
  const starts = stretches.map(({ start }) => start);
  const ends = stretches.map(({ end }) => end);
  const bytes = stretches.map((stretch) => stretch.bytes);
  const every = (value: number): number[] => stretches.map(() => value);
  const blank = ({ codes, dictionary }: TextColumn): TextColumn =>
    new TextColumn(grown(codes, every(NO_TEXT)), dictionary);
  const names = rows.name.dictionary.with(name);
  return {
    length: rows.length + stretches.length,
    id: grown(rows.id, every(-1)),
    name: new TextColumn(grown(rows.name.codes, every(names.length - 1)), names),
    op: blank(rows.op),
    op_name: blank(rows.op_name),
    source: blank(rows.source),
    shape: blank(rows.shape),
    dtype: blank(rows.dtype),
    stack: blank(rows.stack),
    step: blank(rows.step),
    role: grown(rows.role, every(0)),
    colour: grown(rows.colour, every(0)),
    size: grown(rows.size, bytes),
    unpadded: grown(rows.unpadded, bytes),
    charge: grown(rows.charge, bytes),
    start: grown(rows.start, starts),
    end: grown(rows.end, ends),
    defined: grown(rows.defined, starts),
    last_used: grown(
      rows.last_used,
      ends.map((end) => end - 1),
    ),
    region: grown(rows.region, every(0)),
    offset: grown(rows.offset, every(-1)),
    canonical: grown(
      rows.canonical,
      stretches.map((_, stretch) => rows.length + stretch),
    ),
  };
}

type Column = Float64Array | Int32Array | Uint32Array | Uint8Array;

function grown<T extends Column>(column: T, more: readonly number[]): T {
  const all = new (column.constructor as new (length: number) => T)(column.length + more.length);
  all.set(column);
  all.set(more, column.length);
  return all;
}
