import { cssColor, roleColors } from "../../base/colors";
import { formatCount } from "../../base/units";
import { formatTime } from "../../layout/axis";
import { ROLES } from "../../payload/generated/constants";
import { rowLifetime, type Rows } from "../../payload/recording/rows";
import { useDark } from "../state/theme";

/** Letters at the end that are always shown: a line number, the number of an instruction, the end of a path. */
const TAIL = 9;

interface Props {
  text: string;
  /** Letters at the end that are always shown. */
  end?: number;
}

/** Text that gives way in the middle where there is no room: names of one table or chart differ at their ends. */
export function Middle({ text, end = TAIL }: Props) {
  // Not within a pair of UTF-16 units.
  const letters = Array.from(text.slice(-2 * end));
  const tail = text.length > end + TAIL ? letters.slice(-end).join("") : "";
  return (
    <bdi class="middle">
      <span>{text.slice(0, text.length - tail.length)}</span>
      {tail !== "" && <span>{tail}</span>}
    </bdi>
  );
}

/** A file and a line, whose number does not break over two lines of the page. */
export function SourcePlace({ text }: { text: string }) {
  const line = /:\d+$/.exec(text)?.[0] ?? "";
  return (
    <>
      {text.slice(0, text.length - line.length)}
      <span class="line-number">{line}</span>
    </>
  );
}

/** Color and name of a role. */
export function Role({ role }: { role: number }) {
  return (
    <span class="role">
      <Swatch role={role} />
      {ROLES[role]}
    </span>
  );
}

/** Role of a row; an ellipsis until it has loaded. */
export function RowRole({ rows, row }: { rows: Rows; row: number }) {
  return rows.roles_follow ? <>…</> : <Role role={rows.role[row]} />;
}

export function Swatch({ role }: { role: number }) {
  const colors = roleColors(useDark());
  return <i class="swatch" style={{ background: cssColor(colors[role]) }} />;
}

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
