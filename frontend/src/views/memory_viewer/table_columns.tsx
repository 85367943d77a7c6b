import type { JSX } from "preact";
import { formatBytes, formatExact } from "../../base/units";
import type { SortKey } from "../../layout/table_order";
import { expansion } from "../../layout/table_order";
import type { Rows } from "../../payload/recording";
import { Role } from "./role";

export interface ColumnView {
  key: SortKey;
  heading: string;
  about: string;
  /** A track of the CSS grid that every line of the table is. */
  track: string;
  numeric: boolean;
  cell(rows: Rows, row: number, dark: boolean): JSX.Element | string;
}

/** A position as people read it: before and after the program have names. */
export function placeText(position: number, length: number): string {
  if (position < 0) return "before";
  return position >= length ? "after" : String(position);
}

function text(key: "name" | "shape" | "op"): ColumnView["cell"] {
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
  const value = rows.op_name.at(row);
  return (
    <span class="from-end" title={value}>
      <bdi>{value}</bdi>
    </span>
  );
}

function bytes(key: "size" | "unpadded"): ColumnView["cell"] {
  return (rows, row) => <span title={formatExact(rows[key][row])}>{formatBytes(rows[key][row])}</span>;
}

/** The columns of the table of buffers, for a schedule of `length` positions. */
export function bufferColumns(length: number): ColumnView[] {
  const place = (key: "defined" | "last_used"): ColumnView["cell"] => {
    return (rows, row) => placeText(rows[key][row], length);
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

function column(
  key: SortKey,
  heading: string,
  about: string,
  track: string,
  cell: ColumnView["cell"],
  numeric = false,
): ColumnView {
  return { key, heading, about, track, cell, numeric };
}
