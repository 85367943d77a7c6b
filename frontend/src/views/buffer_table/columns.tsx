import { formatTime } from "../../layout/axis";
import type { Value } from "../../layout/table/fields";
import { COLUMNS } from "../../payload/generated/columns";
import { ROLES } from "../../payload/generated/constants";
import {
  type Addresses,
  type ColumnName,
  expansion,
  rowLifetime,
  rowName,
  type Rows,
  type TextName,
} from "../../payload/recording/rows";
import type { Terms } from "../data/terms";
import { Bytes, type Column, column, Path, savedColumn } from "../tables/columns";
import { lastUseText, lifetimeText, Middle, positionText, RowRole } from "../widgets/labels";

/** What the columns read. */
interface Source {
  rows: Rows;
  places: Addresses;
  terms: Terms;
}

/** Columns of a table of buffers, and those of a saved file, with the headings of `tb-memplugin export`. */
export interface BufferColumns {
  columns: Column<number>[];
  saved: Column<number>[];
}

/** How values of each unit are shown; texts may be long names. */
const KINDS = { "": "name", bytes: "bytes", position: "count" } as const;

/** Return a column that the backend declares. `more` is what this table shows in another way. */
function declared(
  name: ColumnName,
  value: (row: number) => Value,
  more: Partial<Column<number>>,
): Column<number> {
  const { heading, csv, unit, about } = COLUMNS[name];
  return column(KINDS[unit], name, heading, about, value, { csv, ...more });
}

/** Return a column of texts, which is left out if it is empty or the same throughout a recording. */
function textColumn(
  rows: Rows,
  name: TextName,
  track: string,
  more: Partial<Column<number>> = {},
): Column<number> {
  const { [name]: texts, length } = rows;
  const constant = texts.blank ? "" : length < 2 ? null : texts.constant;
  return declared(name, (row) => texts.at(row), { track, constant, ...more });
}

/** File name and line; the tooltip has the whole path. */
function sourceColumn(rows: Rows, track: string): Column<number> {
  return textColumn(rows, "source", track, {
    cell: (row) => {
      const value = rows.source.at(row);
      return (
        <span title={value}>
          <Middle text={value.slice(value.lastIndexOf("/") + 1)} />
        </span>
      );
    },
  });
}

function opNameColumn(rows: Rows, track: string, more: Partial<Column<number>> = {}): Column<number> {
  return textColumn(rows, "op_name", track, { cell: (row) => <Path text={rows.op_name.at(row)} />, ...more });
}

function roleColumn({ rows }: Source): Column<number> {
  const first = rows.role.at(0) ?? 0;
  const isSame = !rows.roles_follow && rows.role.every((role) => role === first);
  return declared("role", (row) => ROLES[rows.role[row]], {
    track: "116px",
    constant: !isSame ? null : first === 0 ? "" : rows.length < 2 ? null : ROLES[first],
    cell: (row) => <RowRole {...{ rows, row }} />,
  });
}

/** Requested bytes that are those of the size, of all rows, are no second figure. */
function isExact({ size, requested }: Rows): boolean {
  return size.every((bytes, row) => bytes === requested[row]);
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
      COLUMNS.offset.csv,
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
  const named = [
    declared("name", (row) => rows.name.at(row), {
      about: "HLO instruction, with its tuple index",
      track: "minmax(140px, 1.2fr)",
    }),
    roleColumn(source),
  ];
  const sized = [
    declared("size", (row) => rows.size[row], { track: "76px" }),
    declared("requested", (row) => rows.requested[row], {
      heading: "Unpadded",
      about: "Bytes of the shape, without padding",
      track: "76px",
      constant: exact ? "" : null,
    }),
    column<number>(
      "count",
      "expansion",
      "Exp.",
      "Size divided by unpadded size",
      (row) => expansion(rows, row).toFixed(3),
      {
        track: "56px",
        constant: exact ? "" : null,
        order: (row) => expansion(rows, row),
        cell: (row) => {
          const times = expansion(rows, row);
          return <span class={times >= 1.25 ? "wasteful" : ""}>{`${times.toFixed(2)}×`}</span>;
        },
      },
    ),
  ];
  const others = [
    textColumn(rows, "shape", "minmax(120px, 1fr)"),
    textColumn(rows, "op", "88px"),
    opNameColumn(rows, "minmax(140px, 1.6fr)"),
    sourceColumn(rows, "minmax(130px, 1fr)"),
    declared("defined", (row) => rows.defined[row], {
      track: "68px",
      constant: isMoment,
      cell: (row) => positionText(rows.defined[row], length ?? 1),
    }),
    declared("last_used", (row) => rows.last_used[row], {
      track: "92px",
      constant: isMoment,
      cell: (row) => lastUseText(rows, row, length ?? 1),
    }),
    ...addressColumns(source),
  ];
  // Sizes come first, so that the name of a group, often a long path, has the remaining width.
  return { columns: [...sized, ...named, ...others], saved: [...named, ...sized, ...others] };
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
    declared("name", (row) => rowName(rows, row), {
      about: "Op that requested it, if recorded",
      track: "minmax(220px, 3fr)",
      cell: (row) => {
        const name = rowName(rows, row);
        return name === "" ? <span class="muted">unnamed</span> : <Path text={name} />;
      },
    }),
    roleColumn(source),
  ];
  // A charge is what the allocation adds to the bytes in use.
  const sized = [
    declared("size", (row) => charge[row], {
      csv: COLUMNS.charge.csv,
      track: "76px",
      order: (row) => size[row],
      cell: (row) => <Bytes of={size[row]} />,
    }),
    declared("requested", (row) => Math.min(requested[row], charge[row]), {
      track: "82px",
      constant: isExact(rows) ? "" : null,
      order: (row) => requested[row],
      cell: (row) => <Bytes of={requested[row]} />,
    }),
  ];
  const texts = [
    textColumn(rows, "shape", "minmax(110px, 1fr)"),
    textColumn(rows, "dtype", "60px"),
    textColumn(rows, "op", "88px", { heading: terms.op, about: "Purpose that the allocator recorded" }),
    opNameColumn(rows, "minmax(100px, 1fr)", {
      heading: terms.op_name,
      about: "Function or model path that ran",
    }),
    sourceColumn(rows, "minmax(110px, 1fr)"),
    textColumn(rows, "stack", "minmax(120px, 1.2fr)", { csv: "stack" }),
    // Codes are in the order of the steps.
    textColumn(rows, "step", "minmax(64px, 0.5fr)", { order: (row) => rows.step.codes[row] }),
  ];
  const at = declared("start", (row) => time(start[row]), {
    about: "Time of the allocation, since the profile started",
    csv: "allocated_at_ns",
    track: "84px",
    cell: (row) => {
      const found = time(start[row]);
      return found === null ? "before" : formatTime(found);
    },
    order: (row) => start[row],
  });
  const born = declared("defined", (row) => event(start[row]), {
    heading: "Event",
    about: "Event that allocates it",
    csv: COLUMNS.start.csv,
    track: "68px",
    order: (row) => rows.defined[row],
    cell: (row) => positionText(rows.defined[row], length),
  });
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
    columns: [...sized, ...named, ...texts, at, born, held],
    saved: [
      ...[...named, ...sized, ...texts, at],
      savedColumn("allocated_at_s", (row) => seconds(start[row])),
      savedColumn("freed_at_ns", (row) => time(end[row])),
      savedColumn("freed_at_s", (row) => seconds(end[row])),
      ...[held, born],
      savedColumn(COLUMNS.end.csv, (row) => event(end[row])),
      ...addressColumns(source),
    ],
  };
}
