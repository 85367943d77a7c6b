import type { Table } from "../tables/tables";

/** Addresses of rows; NaN where unknown. */
export interface Addresses {
  /** Source's id of the row's region: the index of a buffer allocation, or the address of a segment. */
  region: (row: number) => number;
  address: (row: number) => number;
}

/** Read addresses of rows that come without their regions. */
export function addressesFromColumns(rows: Table): Addresses {
  const [region, address] = [rows.f64("region_index"), rows.f64("address")];
  return { region: (row) => region[row], address: (row) => address[row] };
}

export function addressesFromRegions(
  { region, offset }: { region: Int32Array; offset: Float64Array },
  regions: Table,
): Addresses {
  const [index, address] = [regions.f64("index"), regions.f64("address")];
  const base = (row: number): number => (region[row] >= 0 && offset[row] >= 0 ? address[region[row]] : NaN);
  return {
    // A row without an offset can be in any of an allocator's segments.
    region: (row) =>
      region[row] >= 0 && Number.isNaN(address[region[row]]) ? index[region[row]] : base(row),
    address: (row) => base(row) + offset[row],
  };
}
