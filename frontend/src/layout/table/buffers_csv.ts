import { formatCsv } from "../../base/csv";
import type { Addresses } from "../../payload/recording/addresses";
import { ROLES } from "../../payload/generated/constants";
import type { Rows } from "../../payload/recording/rows";
import { expansion } from "./row_order";

/** The same headings as `tb-memplugin export`. */
export const ADDRESS_HEADINGS = ["region", "offset_bytes", "address"] as const;

const HEADINGS = [
  "name",
  "category",
  "size_bytes",
  "requested_bytes",
  "expansion",
  "shape",
  "op",
  "op_name",
  "source",
  "defined_at",
  "last_used_at",
  ...ADDRESS_HEADINGS,
];

/** Format the rows as CSV, sizes in bytes. */
export function buffersCsv(rows: Rows, selected: Iterable<number>, places: Addresses): string {
  const lines = Array.from(selected, (row) => [
    rows.name.at(row),
    ROLES[rows.role[row]],
    rows.size[row],
    rows.unpadded[row],
    expansion(rows, row).toFixed(3),
    rows.shape.at(row),
    rows.op.at(row),
    rows.op_name.at(row),
    rows.source.at(row),
    rows.defined[row],
    rows.last_used[row],
    ...addressCells(rows, row, places),
  ]);
  return formatCsv(HEADINGS, lines);
}

/** Return cells that are empty where unknown. */
export function addressCells({ offset }: Rows, row: number, places: Addresses): (number | string)[] {
  const known = (value: number): number | string => (value >= 0 ? value : "");
  return [known(places.region(row)), known(offset[row]), known(places.address(row))];
}
