import { dictionaryOf, TextColumn } from "../../payload/tables/text_column";
import type { Regions } from "../../payload/recording/regions";
import { blankTexts, type Rows } from "../../payload/recording/rows";

/** A buffer of a test: its lifetime, both ends included, and its place in a region. */
export interface BufferLike {
  name?: string;
  role?: number;
  size: number;
  defined: number;
  last_used: number;
  region?: number;
  offset: number;
  canonical?: number;
}

export function textColumn(texts: readonly string[]): TextColumn {
  return new TextColumn(
    Uint32Array.from(texts, (_, i) => i),
    dictionaryOf(texts),
  );
}

export function rowsOf(buffers: readonly BufferLike[]): Rows {
  const numbers = (pick: (buffer: BufferLike, row: number) => number): number[] => buffers.map(pick);
  const size = Float64Array.from(numbers((buffer) => buffer.size));
  const defined = Int32Array.from(numbers((buffer) => buffer.defined));
  const last_used = Int32Array.from(numbers((buffer) => buffer.last_used));
  const role = Uint8Array.from(numbers((buffer) => buffer.role ?? 8));
  return {
    length: buffers.length,
    id: Float64Array.from(numbers((_, row) => row)),
    ...blankTexts(buffers.length),
    name: textColumn(buffers.map((buffer, row) => buffer.name ?? `buffer.${row}`)),
    role,
    roles_follow: false,
    color: role,
    size,
    unpadded: size,
    charge: size,
    start: defined,
    end: last_used.map((position) => position + 1),
    defined,
    last_used,
    region: Int32Array.from(numbers((buffer) => buffer.region ?? 0)),
    offset: Float64Array.from(numbers((buffer) => buffer.offset)),
    canonical: Int32Array.from(numbers((buffer, row) => buffer.canonical ?? row)),
  };
}

/** Stack regions in the given order. */
export function regionsOf(regions: readonly { size: number; temporary: boolean; kind?: string }[]): Regions {
  let base = 0;
  const bases = regions.map(({ size }) => (base += size) - size);
  return {
    length: regions.length,
    index: Float64Array.from(regions.keys()),
    kind: textColumn(regions.map(({ kind }) => kind ?? "temporary")),
    size: Float64Array.from(regions, ({ size }) => size),
    base: Float64Array.from(bases),
    temporary: Uint8Array.from(regions, ({ temporary }) => (temporary ? 1 : 0)),
    start: Int32Array.from(regions, () => -1),
    end: Int32Array.from(regions, () => 2 ** 31 - 1),
    bounded: true,
  };
}
