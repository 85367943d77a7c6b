import type { JSX } from "preact";
import { formatTime } from "../../layout/axis/ticks";
import type { Value } from "../../layout/table/fields";
import { ROLES } from "../../payload/generated/constants";
import {
  type Addresses,
  expansion,
  rowLifetime,
  rowName,
  type Rows,
  type TextName,
} from "../../payload/recording/rows";
import type { Terms } from "../data/terms";
import { Bytes, type Column, column, Path, savedColumn } from "../tables/columns";
import { Middle } from "../widgets/middle";
import { lastUseText, lifetimeText, positionText } from "../widgets/position_text";
import { RowRole } from "../widgets/role";

/** What the columns read. */
interface Source {
  rows: Rows;
  places: Addresses;
  terms: Terms;
  dark: boolean;
}

/** Columns of a table of buffers, and those of a saved file, with the headings of `tb-memplugin export`. */
export interface BufferColumns {
  columns: Column<number>[];
  saved: Column<number>[];
}

/** Return a column of texts, which is left out if it is empty or the same throughout a recording. */
function textColumn(
  rows: Rows,
  key: TextName,
  [heading, about, track]: readonly [heading: string, about: string, track: string],
  cell?: (row: number) => JSX.Element,
): Column<number> {
  const { [key]: texts, length } = rows;
  const read = (row: number): string => texts.at(row);
  const constant = texts.blank ? "" : length < 2 ? null : texts.constant;
  return column("name", key, heading, about, read, { track, constant, ...(cell && { cell }) });
}

/** File name and line; the tooltip has the whole path. */
function sourceColumn(rows: Rows, track: string): Column<number> {
  return textColumn(rows, "source", ["Source", "Source line", track], (row) => {
    const value = rows.source.at(row);
    return (
      <span title={value}>
        <Middle text={value.slice(value.lastIndexOf("/") + 1)} />
      </span>
    );
  });
}

function opNameColumn(rows: Rows, heading: string, about: string, track: string): Column<number> {
  return textColumn(rows, "op_name", [heading, about, track], (row) => <Path text={rows.op_name.at(row)} />);
}

function roleColumn({ rows, dark }: Source, about: string): Column<number> {
  const first = rows.role.at(0) ?? 0;
  const isSame = !rows.roles_follow && rows.role.every((role) => role === first);
  return column("text", "role", "Role", about, (row) => ROLES[rows.role[row]], {
    track: "116px",
    constant: !isSame ? null : first === 0 ? "" : rows.length < 2 ? null : ROLES[first],
    cell: (row) => <RowRole {...{ rows, row, dark }} />,
  });
}

/** Requested bytes that are those of the size, of all rows, are no second figure. */
function isExact({ size, requested, length }: Rows): boolean {
  return length > 1 && size.every((bytes, row) => bytes === requested[row]);
}

/** Columns of addresses, which are saved only, and empty where unknown. */
function addressColumns({ rows, places }: Source): Column<number>[] {
  const known =
    (read: (row: number) => number) =>
    (row: number): Value =>
      read(row) >= 0 ? read(row) : null;
  return [
    savedColumn("region", known(places.region)),
    savedColumn(
      "offset_bytes",
      known((row) => rows.offset[row]),
    ),
    savedColumn("address", known(places.address)),
  ];
}

/**
 * Return the columns for the buffers of a program with a schedule of `length` positions, or if that is null, for memory
 * at one moment.
 */
export function bufferColumns(source: Source, length: number | null): BufferColumns {
  const { rows } = source;
  const exact = isExact(rows);
  const isMoment = length === null ? "" : null;
  const columns = [
    column<number>(
      "name",
      "name",
      "Name",
      "HLO instruction, with its tuple index",
      (row) => rows.name.at(row),
      {
        track: "minmax(140px, 1.2fr)",
      },
    ),
    roleColumn(source, "Role of the buffer"),
    column<number>("bytes", "size", "Size", "Allocated bytes, including padding", (row) => rows.size[row], {
      csv: "size_bytes",
      track: "76px",
    }),
    column<number>(
      "bytes",
      "requested",
      "Unpadded",
      "Bytes of the shape, without padding",
      (row) => rows.requested[row],
      { csv: "requested_bytes", track: "76px", constant: exact ? "as Size" : null },
    ),
    column<number>(
      "count",
      "expansion",
      "Exp.",
      "Size divided by unpadded size",
      (row) => expansion(rows, row).toFixed(3),
      {
        track: "56px",
        constant: exact ? "1.00×" : null,
        order: (row) => expansion(rows, row),
        cell: (row) => {
          const times = expansion(rows, row);
          return <span class={times >= 1.25 ? "wasteful" : ""}>{`${times.toFixed(2)}×`}</span>;
        },
      },
    ),
    textColumn(rows, "shape", ["Shape", "Shape with layout", "minmax(120px, 1fr)"]),
    textColumn(rows, "op", ["Op", "HLO opcode", "88px"]),
    opNameColumn(rows, "Op name", "Model path", "minmax(140px, 1.6fr)"),
    sourceColumn(rows, "minmax(130px, 1fr)"),
    column<number>("count", "defined", "Defined", "Position that writes it", (row) => rows.defined[row], {
      csv: "defined_at",
      track: "68px",
      constant: isMoment,
      cell: (row) => positionText(rows.defined[row], length ?? 1),
    }),
    column<number>(
      "count",
      "last_used",
      "Last used",
      "Last position that reads it, and if a buffer that shares its memory is live for longer, " +
        "the last position of that",
      (row) => rows.last_used[row],
      {
        csv: "last_used_at",
        track: "92px",
        constant: isMoment,
        cell: (row) => lastUseText(rows, row, length ?? 1),
      },
    ),
    ...addressColumns(source),
  ];
  return { columns, saved: columns };
}

/** Return the columns for an allocator's allocations. `times` are those of its events, null until they have loaded. */
export function allocationColumns(source: Source, times: Float64Array | null): BufferColumns {
  const { rows, terms } = source;
  const { start, end, size, requested, charge } = rows;
  const length = times?.length ?? Infinity;
  /** Times of allocations before the recording, and of frees after it, are unknown. */
  const event = (position: number): number | null =>
    times === null || position < 0 || position >= length ? null : position;
  const time = (position: number): number | null =>
    times === null || event(position) === null ? null : times[position];
  const seconds = (position: number): string | null => {
    const at = time(position);
    return at === null ? null : (at / 1e9).toFixed(9);
  };
  const named = [
    column<number>("path", "name", "Name", "Op that requested it, if recorded", (row) => rowName(rows, row), {
      track: "minmax(220px, 3fr)",
      cell: (row) => {
        const name = rowName(rows, row);
        return name === "" ? <span class="muted">unnamed</span> : <Path text={name} />;
      },
    }),
    roleColumn(source, "Role of the tensor"),
  ];
  // A charge is what the allocation adds to the bytes in use.
  const sized = [
    column<number>("bytes", "size", "Size", "Allocated bytes, including rounding", (row) => charge[row], {
      csv: "charge_bytes",
      track: "76px",
      order: (row) => size[row],
      cell: (row) => <Bytes of={size[row]} />,
    }),
    column<number>(
      "bytes",
      "requested",
      "Requested",
      "Requested bytes",
      (row) => Math.min(requested[row], charge[row]),
      {
        csv: "requested_bytes",
        track: "82px",
        constant: isExact(rows) ? "as Size" : null,
        order: (row) => requested[row],
        cell: (row) => <Bytes of={requested[row]} />,
      },
    ),
  ];
  const texts = [
    textColumn(rows, "shape", ["Shape", "Shape with layout", "minmax(110px, 1fr)"]),
    textColumn(rows, "dtype", ["Type", "Type of the elements", "60px"]),
    textColumn(rows, "op", [terms.op, "Purpose that the allocator recorded", "88px"]),
    opNameColumn(rows, terms.op_name, "Function or model path that ran", "minmax(100px, 1fr)"),
    sourceColumn(rows, "minmax(110px, 1fr)"),
    textColumn(rows, "stack", [
      "Stack",
      "Innermost Python frame, and the number of frames",
      "minmax(120px, 1.2fr)",
    ]),
    {
      ...textColumn(rows, "step", ["Step", "Step of the allocation", "minmax(64px, 0.5fr)"]),
      // Codes are in the order of the steps.
      order: (row: number) => rows.step.codes[row],
    },
  ];
  const at = column<number>(
    "count",
    "start",
    "At",
    "Time of the allocation, since the profile started",
    (row) => time(start[row]),
    {
      csv: "allocated_at_ns",
      track: "84px",
      order: (row) => start[row],
      cell: (row) => {
        const found = time(start[row]);
        return found === null ? "before" : formatTime(found);
      },
    },
  );
  const born = column<number>(
    "count",
    "defined",
    "Event",
    "Event that allocates it",
    (row) => event(start[row]),
    {
      csv: "allocated_at",
      track: "68px",
      order: (row) => rows.defined[row],
      cell: (row) => positionText(rows.defined[row], length),
    },
  );
  const held = column<number>(
    "count",
    "duration",
    "Lifetime",
    "From allocation to free, or to the end of the recording",
    (row) => rowLifetime(rows, row, times),
    {
      csv: "held_ns",
      track: "124px",
      cell: (row) => (times === null ? "" : lifetimeText(rows, row, times)),
    },
  );
  return {
    // Sizes come first, so that the name of a group, often a long path, has the remaining width.
    columns: [...sized, ...named, ...texts, at, born, held],
    saved: [
      ...[...named, ...sized, ...texts, at],
      savedColumn("allocated_at_s", (row) => seconds(start[row])),
      savedColumn("freed_at_ns", (row) => time(end[row])),
      savedColumn("freed_at_s", (row) => seconds(end[row])),
      ...[held, born],
      savedColumn("freed_at", (row) => event(end[row])),
      ...addressColumns(source),
    ],
  };
}
