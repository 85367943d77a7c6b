import type { Table } from "../tables/tables";

/** Where rows lie. NaN where that is not known. */
export interface Addresses {
  /** What the source calls the region that a row lies in: a buffer allocation's index, or where a segment begins. */
  region: (row: number) => number;
  address: (row: number) => number;
}

/** Of rows that come without the regions. */
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
    // What has no offset may be in any of an allocator's segments.
    region: (row) =>
      region[row] >= 0 && Number.isNaN(address[region[row]]) ? index[region[row]] : base(row),
    address: (row) => base(row) + offset[row],
  };
}
