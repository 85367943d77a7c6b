import type { JSX } from "preact";
import { formatBytes, formatExact } from "../../base/units";
import type { RowSortKey } from "../../layout/table/row_order";
import { expansion } from "../../layout/table/row_order";
import { rowName, type Rows } from "../../payload/recording/rows";
import { formatTime } from "../../layout/axis/ticks";
import { lifetimeText, positionText } from "../widgets/position_text";
import type { Terms } from "../data/terms";
import type { Column } from "../tables/data_table";
import { Role } from "../widgets/role";

export interface ColumnView extends Column<RowSortKey> {
  cell(rows: Rows, row: number, dark: boolean): JSX.Element | string;
}

/** Allocations are named by the path of an op, whose end tells them apart. */
function name(rows: Rows, row: number): JSX.Element | string {
  const value = rowName(rows, row);
  return value === "" ? <span class="muted">unnamed</span> : clipStart(value);
}

function text(key: "name" | "shape" | "op" | "dtype" | "step" | "stack"): ColumnView["cell"] {
  return (rows, row) => {
    const value = rows[key].at(row);
    return <span title={value}>{value}</span>;
  };
}

/** The file's name and line, which is what tells places apart; the whole path is in the title. */
function source(rows: Rows, row: number): JSX.Element {
  const value = rows.source.at(row);
  return <span title={value}>{value.slice(value.lastIndexOf("/") + 1)}</span>;
}

/** Paths in a model begin alike: where there is no room, their beginning gives way. */
function path(rows: Rows, row: number): JSX.Element {
  return clipStart(rows.op_name.at(row));
}

function clipStart(value: string): JSX.Element {
  return (
    <span class="from-end" title={value}>
      <bdi>{value}</bdi>
    </span>
  );
}

function bytes(key: "size" | "unpadded"): ColumnView["cell"] {
  return (rows, row) => <span title={formatExact(rows[key][row])}>{formatBytes(rows[key][row])}</span>;
}

/** The columns of the table of buffers of a program, for a schedule of `length` positions. */
export function bufferColumns(length: number): ColumnView[] {
  const place = (key: "defined" | "last_used"): ColumnView["cell"] => {
    return (rows, row) => positionText(rows[key][row], length);
  };
  return [
    column("name", "Name", "HLO instruction, with its tuple index", "minmax(140px, 1.2fr)", text("name")),
    column("role", "Category", "What the buffer is for", "116px", (rows, row, dark) => (
      <Role role={rows.role[row]} dark={dark} />
    )),
    column("size", "Size", "Bytes as placed, padding included", "76px", bytes("size"), true),
    column("unpadded", "Unpadded", "Bytes the shape asks for", "76px", bytes("unpadded"), true),
    column(
      "expansion",
      "Exp.",
      "Size over unpadded size",
      "56px",
      (rows, row) => {
        const times = expansion(rows, row);
        return <span class={times >= 1.25 ? "wasteful" : ""}>{`${times.toFixed(2)}×`}</span>;
      },
      true,
    ),
    column("shape", "Shape", "Shape with layout", "minmax(120px, 1fr)", text("shape")),
    column("op", "Op", "HLO opcode", "88px", text("op")),
    column("op_name", "Op name", "Path in the model", "minmax(140px, 1.6fr)", path),
    column("source", "Source", "Where it was written", "minmax(130px, 1fr)", source),
    column("defined", "Defined", "Position that writes it", "68px", place("defined"), true),
    column("last_used", "Last used", "Last position that reads it", "74px", place("last_used"), true),
  ];
}

/** The columns of the table of an allocator's allocations that say anything. `times` are those of its events. */
export function allocationColumns(of: Rows, times: Float64Array | null, terms: Terms): ColumnView[] {
  const length = times?.length ?? Infinity;
  const event = (rows: Rows, row: number): string => positionText(rows.defined[row], length);
  const when = (rows: Rows, row: number): string =>
    times === null || rows.start[row] < 0 ? "before" : formatTime(times[rows.start[row]]);
  const columns = [
    // Sizes first: what a group is called, which may be a long path, then has all the room there is.
    column("size", "Size", "Bytes as placed, rounding included", "76px", bytes("size"), true),
    column("unpadded", "Requested", "Bytes asked for", "82px", bytes("unpadded"), true),
    column("name", "Name", "The op that asked for it, where the profile says so", "minmax(220px, 3fr)", name),
    column("role", "Category", "What the tensor is for", "116px", (rows, row, dark) => (
      <Role role={rows.role[row]} dark={dark} />
    )),
    column("shape", "Shape", "Shape with layout", "minmax(110px, 1fr)", text("shape")),
    column("dtype", "Type", "Type of the elements", "60px", text("dtype")),
    column("op", terms.op, "What the allocator was told it is for", "88px", text("op")),
    column(
      "op_name",
      terms.op_name,
      "The function or path in the model that ran",
      "minmax(100px, 1fr)",
      path,
    ),
    column("source", "Source", "Where it was written", "minmax(110px, 1fr)", source),
    column(
      "stack",
      "Stack",
      "Its innermost Python frame, and how many there are",
      "minmax(120px, 1.2fr)",
      text("stack"),
    ),
    column("step", "Step", "Step in which it was allocated", "minmax(64px, 0.5fr)", text("step")),
    column("start", "At", "When it was allocated, since the profile began", "84px", when, true),
    column("defined", "Event", "Event that allocates it", "68px", event, true),
    column(
      "duration",
      "Held for",
      "From its allocation to its free, or as far as the recording goes",
      "124px",
      (rows, row) => (times === null ? "" : lifetimeText(rows, row, times)),
      true,
    ),
  ];
  return columns.filter(({ key }) => !isBlank(of, key));
}

/** The columns of the table of what was there at one moment, that say anything. */
export function momentColumns(of: Rows): ColumnView[] {
  const saysNothing: RowSortKey[] = ["defined", "last_used"];
  if (of.size.every((size, row) => size === of.unpadded[row])) saysNothing.push("unpadded", "expansion");
  return bufferColumns(1).filter(({ key }) => !saysNothing.includes(key) && !isBlank(of, key));
}

function isBlank(of: Rows, key: RowSortKey): boolean {
  if (key === "role") return of.role.every((role) => role === 0);
  const text = TEXT_COLUMNS.find((blankable) => blankable === key);
  return text !== undefined && of[text].blank;
}

/** Texts that a profile may not have of any allocation. */
const TEXT_COLUMNS = ["shape", "dtype", "op", "op_name", "source", "stack", "step"] as const;

function column(
  key: RowSortKey,
  heading: string,
  about: string,
  track: string,
  cell: ColumnView["cell"],
  numeric = false,
): ColumnView {
  return { key, heading, about, track, cell, numeric };
}
