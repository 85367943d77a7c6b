import { formatCount } from "../../base/units";
import { formatTime } from "../../layout/axis/ticks";
import { rowLifetime, type Rows } from "../../payload/recording/rows";

/** Return the lifetime of an allocation as text; "at least" if the recording covers only a part of it. */
export function lifetimeText(rows: Rows, row: number, times: Float64Array): string {
  const partly = rows.start[row] < 0 || rows.end[row] >= times.length;
  return `${partly ? "at least " : ""}${formatTime(rowLifetime(rows, row, times))}`;
}

/** Return the last position at which the memory of a row is in use, by itself or by a buffer that shares it. */
export function liveUntil({ end }: Rows, row: number, length: number): number {
  return Math.min(end[row], length) - 1;
}

/**
 * Return the last use of a row as text, and where its memory is in use for longer, until when: "87 → 215". Buffers
 * that share its memory then use it, and it is charged to this row.
 */
export function lastUseText(rows: Rows, row: number, length: number): string {
  const used = positionText(rows.last_used[row], length);
  return isSharedLater(rows, row, length)
    ? `${used} \u2192 ${positionText(liveUntil(rows, row, length), length)}`
    : used;
}

/** Return whether a row's memory is charged to it after its last use. */
export function isSharedLater(rows: Rows, row: number, length: number): boolean {
  return (
    rows.charge[row] > 0 && liveUntil(rows, row, length) > Math.max(rows.last_used[row], rows.start[row])
  );
}

/** Return a position as text; positions before and after the program have names. */
export function positionText(position: number, length: number): string {
  if (position < 0) return "before";
  return position >= length ? "after" : formatCount(position);
}
