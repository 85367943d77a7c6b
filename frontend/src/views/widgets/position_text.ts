import { rowLifetime } from "../../layout/table/row_order";
import { formatTime } from "../../layout/axis/ticks";
import type { Rows } from "../../payload/recording/rows";

/** How long an allocation was held, in words: the recording may know only a part of it. */
export function lifetimeText(rows: Rows, row: number, times: Float64Array): string {
  const partly = rows.start[row] < 0 || rows.end[row] >= times.length;
  return `${partly ? "at least " : ""}${formatTime(rowLifetime(rows, row, times))}`;
}

/** A position as people read it: before and after the program have names. */
export function positionText(position: number, length: number): string {
  if (position < 0) return "before";
  return position >= length ? "after" : String(position);
}
