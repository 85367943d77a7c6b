import type { OverviewRow } from "../payload/generated/answers";
import { type Columns, mapColumns, type Regions, type Rows } from "../payload/recording/rows";
import { makeSummary } from "../payload/responses/fixture";
import { emptyColumns } from "../payload/tables/tables";
import { dictionaryOf, TextColumn } from "../payload/tables/text_column";

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
  return new TextColumn(Uint32Array.from(texts.keys()), dictionaryOf(texts));
}

export function rowsOf(buffers: readonly BufferLike[]): Rows {
  const { length } = buffers;
  const size = Float64Array.from(buffers, (buffer) => buffer.size);
  const start = Int32Array.from(buffers, ({ defined }) => defined);
  const last_used = Int32Array.from(buffers, (buffer) => buffer.last_used);
  const role = Uint8Array.from(buffers, (buffer) => buffer.role ?? 8);
  const known: Partial<Columns> = {
    ...{ size, requested: size, charge: size, start, defined: start, last_used, role },
    id: Float64Array.from(buffers.keys()),
    name: textColumn(buffers.map(({ name }, row) => name ?? `buffer.${row}`)),
    end: last_used.map((position) => position + 1),
    region: Int32Array.from(buffers, ({ region }) => region ?? 0),
    offset: Float64Array.from(buffers, ({ offset }) => offset),
    canonical: Int32Array.from(buffers, ({ canonical }, row) => canonical ?? row),
  };
  const empty = emptyColumns(length);
  const columns = mapColumns((name, kind) => known[name] ?? empty(kind));
  return { ...columns, length, roles_follow: false, color: role };
}

/** Stack regions in the given order. */
export function regionsOf(regions: readonly { size: number; temporary: boolean; kind?: string }[]): Regions {
  let base = 0;
  const bases = regions.map(({ size }) => (base += size) - size);
  return {
    length: regions.length,
    index: Float64Array.from(regions.keys()),
    address: Float64Array.from(bases, (first) => 1000 + first),
    kind: textColumn(regions.map(({ kind }) => kind ?? "temporary")),
    size: Float64Array.from(regions, ({ size }) => size),
    base: Float64Array.from(bases),
    temporary: Uint8Array.from(regions, ({ temporary }) => (temporary ? 1 : 0)),
    start: Int32Array.from(regions, () => -1),
    end: Int32Array.from(regions, () => 2 ** 31 - 1),
    bounded: true,
  };
}

/** A row of Overview with unremarkable values, for tests. */
export function overviewRow(id: string, more: Partial<OverviewRow> = {}): OverviewRow {
  return {
    ...makeSummary(id, { peak_bytes: 100, reserved_bytes: 100 }),
    needed_bytes: 100,
    headroom_bytes: null,
    small: false,
    role: null,
    part: null,
    remedy: null,
    alarm: "",
    ...more,
  };
}
