import type { Program } from "../../payload/recording/program";
import type { Rows } from "../../payload/recording/rows";
import { NO_TEXT, TextColumn } from "../../payload/tables/text_column";

/** Positions [start, end) with a constant number of bytes. */
interface ConstantStretch {
  start: number;
  end: number;
  bytes: number;
}

/** Return the stretches with nonzero bytes, in order. */
export function constantStretches(bytes: Float64Array): ConstantStretch[] {
  const found: ConstantStretch[] = [];
  for (let start = 0, end = 0; start < bytes.length; start = end) {
    while (end < bytes.length && bytes[end] === bytes[start]) end += 1;
    if (bytes[start] > 0) found.push({ start, end, bytes: bytes[start] });
  }
  return found;
}

/**
 * Append a row called `name` for each stretch of bytes that no row explains, so that the rows sum to the
 * bytes in use at every position. The appended rows have no address.
 */
export function appendUnexplained(rows: Rows, { unexplained }: Program, name: string): Rows {
  const stretches = unexplained === null ? [] : constantStretches(unexplained);
  if (stretches.length === 0) return rows;
  const starts = stretches.map(({ start }) => start);
  const ends = stretches.map(({ end }) => end);
  const bytes = stretches.map((stretch) => stretch.bytes);
  const every = (value: number): number[] => stretches.map(() => value);
  const blank = ({ codes, dictionary }: TextColumn): TextColumn =>
    new TextColumn(extend(codes, every(NO_TEXT)), dictionary);
  const names = rows.name.dictionary.with(name);
  return {
    length: rows.length + stretches.length,
    id: extend(rows.id, every(-1)),
    name: new TextColumn(extend(rows.name.codes, every(names.length - 1)), names),
    op: blank(rows.op),
    op_name: blank(rows.op_name),
    copied: blank(rows.copied),
    source: blank(rows.source),
    shape: blank(rows.shape),
    dtype: blank(rows.dtype),
    stack: blank(rows.stack),
    step: blank(rows.step),
    role: extend(rows.role, every(0)),
    roles_follow: rows.roles_follow,
    color: extend(rows.color, every(0)),
    size: extend(rows.size, bytes),
    unpadded: extend(rows.unpadded, bytes),
    charge: extend(rows.charge, bytes),
    start: extend(rows.start, starts),
    end: extend(rows.end, ends),
    defined: extend(rows.defined, starts),
    last_used: extend(
      rows.last_used,
      ends.map((end) => end - 1),
    ),
    region: extend(rows.region, every(0)),
    offset: extend(rows.offset, every(-1)),
    canonical: extend(
      rows.canonical,
      stretches.map((_, stretch) => rows.length + stretch),
    ),
  };
}

type NumberColumn = Float64Array | Int32Array | Uint32Array | Uint8Array;

function extend<T extends NumberColumn>(column: T, more: readonly number[]): T {
  const all = new (column.constructor as new (length: number) => T)(column.length + more.length);
  all.set(column);
  all.set(more, column.length);
  return all;
}
