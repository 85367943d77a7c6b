import type { JSX } from "preact";
import { formatBytes, formatExact } from "../../base/units";
import type { RowSortKey } from "../../layout/table/row_order";
import { expansion } from "../../layout/table/row_order";
import { rowName, type Rows } from "../../payload/recording/rows";
import { formatTime } from "../../layout/axis/ticks";
import { lastUseText, lifetimeText, positionText } from "../widgets/position_text";
import type { Terms } from "../data/terms";
import type { Column } from "../tables/data_table";
import { Middle } from "../widgets/middle";
import { RowRole } from "../widgets/role";

export interface ColumnView extends Column<RowSortKey> {
  cell(rows: Rows, row: number, dark: boolean): JSX.Element | string;
}

/** Name of an allocation: the path of an op, shortened at the start because paths differ at the end. */
function name(rows: Rows, row: number): JSX.Element | string {
  const value = rowName(rows, row);
  return value === "" ? <span class="muted">unnamed</span> : clipStart(value);
}

function text(key: "name" | "shape" | "op" | "dtype" | "step" | "stack"): ColumnView["cell"] {
  return (rows, row) => {
    const value = rows[key].at(row);
    return (
      <span title={value}>
        <Middle text={value} />
      </span>
    );
  };
}

/** File name and line; the tooltip has the whole path. */
function source(rows: Rows, row: number): JSX.Element {
  const value = rows.source.at(row);
  return (
    <span title={value}>
      <Middle text={value.slice(value.lastIndexOf("/") + 1)} />
    </span>
  );
}

/** Model path, shortened at the start because paths differ at the end. */
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

/** Return the columns for the buffers of a program with a schedule of `length` positions. */
export function bufferColumns(length: number): ColumnView[] {
  return [
    column("name", "Name", "HLO instruction, with its tuple index", "minmax(140px, 1.2fr)", text("name")),
    column("role", "Category", "Role of the buffer", "116px", (rows, row, dark) => (
      <RowRole {...{ rows, row, dark }} />
    )),
    column("size", "Size", "Allocated bytes, including padding", "76px", bytes("size"), true),
    column("unpadded", "Unpadded", "Bytes of the shape, without padding", "76px", bytes("unpadded"), true),
    column(
      "expansion",
      "Exp.",
      "Size divided by unpadded size",
      "56px",
      (rows, row) => {
        const times = expansion(rows, row);
        return <span class={times >= 1.25 ? "wasteful" : ""}>{`${times.toFixed(2)}×`}</span>;
      },
      true,
    ),
    column("shape", "Shape", "Shape with layout", "minmax(120px, 1fr)", text("shape")),
    column("op", "Op", "HLO opcode", "88px", text("op")),
    column("op_name", "Op name", "Model path", "minmax(140px, 1.6fr)", path),
    column("source", "Source", "Source line", "minmax(130px, 1fr)", source),
    column(
      "defined",
      "Defined",
      "Position that writes it",
      "68px",
      (rows, row) => positionText(rows.defined[row], length),
      true,
    ),
    column(
      "last_used",
      "Last used",
      "Last position that reads it, and if a buffer that shares its memory is live for longer, the last position of that",
      "92px",
      (rows, row) => lastUseText(rows, row, length),
      true,
    ),
  ];
}

/** Return the columns for an allocator's allocations. `times` are those of its events. */
export function allocationColumns(times: Float64Array | null, terms: Terms): ColumnView[] {
  const length = times?.length ?? Infinity;
  const event = (rows: Rows, row: number): string => positionText(rows.defined[row], length);
  const when = (rows: Rows, row: number): string =>
    times === null || rows.start[row] < 0 ? "before" : formatTime(times[rows.start[row]]);
  const columns = [
    // Sizes come first, so that the name of a group, often a long path, has the remaining width.
    column("size", "Size", "Allocated bytes, including rounding", "76px", bytes("size"), true),
    column("unpadded", "Requested", "Requested bytes", "82px", bytes("unpadded"), true),
    column("name", "Name", "Op that requested it, if recorded", "minmax(220px, 3fr)", name),
    column("role", "Category", "Role of the tensor", "116px", (rows, row, dark) => (
      <RowRole {...{ rows, row, dark }} />
    )),
    column("shape", "Shape", "Shape with layout", "minmax(110px, 1fr)", text("shape")),
    column("dtype", "Type", "Type of the elements", "60px", text("dtype")),
    column("op", terms.op, "Purpose that the allocator recorded", "88px", text("op")),
    column("op_name", terms.op_name, "Function or model path that ran", "minmax(100px, 1fr)", path),
    column("source", "Source", "Source line", "minmax(110px, 1fr)", source),
    column(
      "stack",
      "Stack",
      "Innermost Python frame, and the number of frames",
      "minmax(120px, 1.2fr)",
      text("stack"),
    ),
    column("step", "Step", "Step of the allocation", "minmax(64px, 0.5fr)", text("step")),
    column("start", "At", "Time of the allocation, since the profile started", "84px", when, true),
    column("defined", "Event", "Event that allocates it", "68px", event, true),
    column(
      "duration",
      "Lifetime",
      "From allocation to free, or to the end of the recording",
      "124px",
      (rows, row) => (times === null ? "" : lifetimeText(rows, row, times)),
      true,
    ),
  ];
  return columns;
}

/** Return the columns for memory at one moment. */
export function momentColumns(): ColumnView[] {
  return bufferColumns(1).filter(({ key }) => key !== "defined" && key !== "last_used");
}

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
