import { rowLifetime } from "../../layout/table/row_order";
import { formatTime } from "../../layout/axis/ticks";
import type { Rows } from "../../payload/recording/rows";

/** Return the lifetime of an allocation as text; "at least" if the recording covers only a part of it. */
export function lifetimeText(rows: Rows, row: number, times: Float64Array): string {
  const partly = rows.start[row] < 0 || rows.end[row] >= times.length;
  return `${partly ? "at least " : ""}${formatTime(rowLifetime(rows, row, times))}`;
}

/** Return a position as text; positions before and after the program have names. */
export function positionText(position: number, length: number): string {
  if (position < 0) return "before";
  return position >= length ? "after" : String(position);
}
