import type { Addresses } from "../../payload/recording/addresses";
import { ROLES } from "../../payload/generated/constants";
import { rowName, type Rows } from "../../payload/recording/rows";
import { formatCsv } from "../../base/csv";
import { ADDRESS_HEADINGS, addressCells } from "./buffers_csv";
import { rowLifetime } from "./row_order";

const HEADINGS = [
  "name",
  "category",
  "charge_bytes",
  "requested_bytes",
  "shape",
  "dtype",
  "op",
  "op_name",
  "source",
  "stack",
  "step",
  "allocated_at_ns",
  "allocated_at_s",
  "freed_at_ns",
  "freed_at_s",
  "held_ns",
  "allocated_at",
  "freed_at",
  ...ADDRESS_HEADINGS,
] as const;

const UNEXPLAINED = "stack, or unexplained by any allocation";

/**
 * Format an allocator's rows as CSV. A last line contains the bytes that no row explains, so that the sum
 * equals the allocator's own figure. Times of allocations before the recording, and of frees after it, are
 * empty; lifetimes then cover the recorded part. `times` are the events' times in ns.
 */
export function allocationsCsv(
  rows: Rows,
  selected: Iterable<number>,
  places: Addresses,
  times: Float64Array,
  unexplained: number,
): string {
  const lines = Array.from(selected, (row) => [
    rowName(rows, row),
    ROLES[rows.role[row]],
    rows.charge[row],
    Math.min(rows.unpadded[row], rows.charge[row]),
    rows.shape.at(row),
    rows.dtype.at(row),
    rows.op.at(row),
    rows.op_name.at(row),
    rows.source.at(row),
    rows.stack.at(row),
    rows.step.at(row),
    ...timeCells(times, rows.start[row]),
    ...timeCells(times, rows.end[row]),
    rowLifetime(rows, row, times),
    eventCell(times, rows.start[row]),
    eventCell(times, rows.end[row]),
    ...addressCells(rows, row, places),
  ]);
  if (unexplained !== 0)
    lines.push([UNEXPLAINED, "", unexplained, ...new Array<string>(HEADINGS.length - 3).fill("")]);
  return formatCsv(HEADINGS, lines);
}

function eventCell(times: Float64Array, position: number): number | string {
  return position < 0 || position >= times.length ? "" : position;
}

/** Return a position's time in ns and in seconds. */
function timeCells(times: Float64Array, position: number): [number | string, string] {
  if (eventCell(times, position) === "") return ["", ""];
  return [times[position], (times[position] / 1e9).toFixed(9)];
}
