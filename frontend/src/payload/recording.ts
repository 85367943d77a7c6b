import type { Places } from "./places";
import { placesIn, placesTold } from "./places";
import type { Refusal } from "./refusal";
import { sizeColours } from "./size_colours";
import { stepsOfBirth } from "./steps";
import { blankColumn, type Table, type Tables, type TextColumn } from "./tables";

/** What a role number of `Rows.role` means, in the order of the backend's Role. */
export const ROLES = [
  "unknown",
  "parameter",
  "optimizer state",
  "input",
  "gradient",
  "activation",
  "output",
  "constant",
  "temporary",
  "executable",
  "thread-local",
  "state",
] as const;

export type RoleName = (typeof ROLES)[number];

export interface Caveat {
  code: string;
  text: string;
  bytes: number | null;
}

/** One recording as api/recordings lists it. Sizes in bytes; null where unknown. */
export interface Summary {
  id: string;
  kind: string;
  title: string;
  run: string;
  host: string;
  memory: string;
  axis: string;
  allocations: number;
  peak_bytes: number;
  peak_position: number;
  reserved_bytes: number | null;
  reported_peak_bytes: number | null;
  capacity_bytes: number | null;
  caveats: Caveat[];
}

export interface Figure {
  key: string;
  label: string;
  bytes: number | null;
  text: string;
}

/** Live bytes per position, or the least and the most per bucket that starts there. */
export interface Usage {
  length: number;
  position: Int32Array;
  live_max: Float64Array;
  live_min: Float64Array;
  unpadded_max: Float64Array;
  unpadded_min: Float64Array;
  /** What an allocator says of itself, as far as it does. */
  said: readonly Said[];
}

/** The most and the least in each bucket, in bytes, of fragmentation as a share; NaN where it is not known. */
export interface Said {
  key: (typeof SAID)[number];
  most: Float64Array;
  least: Float64Array;
}

const SAID = ["held", "heap", "stack", "free", "largest_free", "fragmentation"] as const;

/** The allocations; the index in these columns is the row number. Meanings and units are those of api/rows. */
export interface Rows {
  length: number;
  id: Float64Array;
  name: TextColumn;
  op: TextColumn;
  op_name: TextColumn;
  source: TextColumn;
  shape: TextColumn;
  dtype: TextColumn;
  /** Of an allocator: what its stack is called, an entry for each stack, and the step it was allocated in. */
  stack: TextColumn;
  step: TextColumn;
  role: Uint8Array;
  /** Number of a colour in base/colors.ts: that of the role, or where no role is known, of the size. */
  colour: Uint8Array;
  size: Float64Array;
  unpadded: Float64Array;
  charge: Float64Array;
  start: Int32Array;
  end: Int32Array;
  defined: Int32Array;
  last_used: Int32Array;
  region: Int32Array;
  offset: Float64Array;
  canonical: Int32Array;
}

/** Buffer allocations that hold the rows; `base` is where each is stacked on the timeline's y axis, in bytes. */
export interface Regions {
  length: number;
  /** What the source calls each: a number, or its address. */
  index: Float64Array;
  kind: TextColumn;
  size: Float64Array;
  base: Float64Array;
  temporary: Uint8Array;
  /** There at positions from start to before end. */
  start: Int32Array;
  end: Int32Array;
  /** Whether they end where the memory does: else what no row ever lay in may be anybody's. */
  bounded: boolean;
}

/** What each position is: an instruction of the flattened schedule, or an event of an allocator. */
export interface Program {
  length: number;
  name: TextColumn;
  op: TextColumn;
  op_name: TextColumn;
  computation: TextColumn;
  /** When each event was, in ns since the profile began, never decreasing; null for a schedule, which has no clock. */
  time_ns: Float64Array | null;
  /** Bytes in use at each event that no row explains; null where rows explain all there is. */
  unexplained: Float64Array | null;
}

/** The kinds of spans; the last is a moment, at which the memory refused a request. */
export const STEP = 0;
export const EXECUTION = 1;
export const ANNOTATION = 2;
export const OUT_OF_MEMORY = 3;

/** Stretches of time with a name: steps of the training loop, executions of programs, and what the user marked. */
export interface Spans {
  length: number;
  name: TextColumn;
  kind: Uint8Array;
  /** Nanoseconds, as in `Program`. */
  start_ns: Float64Array;
  end_ns: Float64Array;
}

/** The answer of api/memory_viewer and of api/memory_profile. */
export interface FirstView {
  recording: Summary;
  length: number;
  headline: string;
  figures: Figure[];
  caveats: Caveat[];
  /** What was asked and not given; null of all but errors. */
  refusal: Refusal | null;
  peak: number;
  usage: Usage;
  rows: Rows;
  places: Places;
  /** Row number in api/rows of each of `rows`. */
  row: Uint32Array;
}

/** The answer of api/rows. */
export interface Everything {
  rows: Rows;
  regions: Regions;
  places: Places;
  program: Program;
  /** Null where the profile names none. */
  spans: Spans | null;
}

export function readUsage(table: Table): Usage {
  return {
    length: table.length,
    position: table.i32("position"),
    live_max: table.f64("live_max"),
    live_min: table.f64("live_min"),
    unpadded_max: table.f64("unpadded_max"),
    unpadded_min: table.f64("unpadded_min"),
    said: SAID.filter((key) => table.has(`${key}_max`)).map((key) => ({
      key,
      most: table.f64(`${key}_max`),
      least: table.f64(`${key}_min`),
    })),
  };
}

/** What a row is called; empty where nothing is known. What an allocator held before has no name of its own. */
export function rowName({ name, start, defined }: Rows, row: number): string {
  return name.at(row) || (start[row] < 0 && defined[row] < 0 ? "live before the recording" : "");
}

export function readRows(table: Table): Rows {
  const columns = readColumns(table);
  return { ...columns, colour: colourOf(columns) };
}

/** Roles where the profile has any; else rows are told apart by their sizes. */
function colourOf(rows: Omit<Rows, "colour">): Uint8Array {
  return rows.role.some((role) => role !== 0) ? rows.role : sizeColours(rows);
}

function readColumns(table: Table): Omit<Rows, "colour"> {
  return {
    length: table.length,
    id: table.f64("id"),
    name: table.text("name"),
    op: table.text("op"),
    op_name: table.text("op_name"),
    source: table.text("source"),
    shape: table.text("shape"),
    dtype: table.text("dtype"),
    stack: table.has("stack") ? table.text("stack") : blankColumn(table.length),
    step: blankColumn(table.length),
    role: table.u8("role"),
    size: table.f64("size"),
    unpadded: table.f64("unpadded"),
    charge: table.f64("charge"),
    start: table.i32("start"),
    end: table.i32("end"),
    defined: table.i32("defined"),
    last_used: table.i32("last_used"),
    region: table.i32("region"),
    offset: table.f64("offset"),
    canonical: table.i32("canonical"),
  };
}

interface FirstViewMeta {
  recording: Summary;
  axis: { length: number };
  headline: string;
  figures: Figure[];
  caveats: Caveat[];
  refusal: Refusal | null;
  peak: { position: number };
}

export function readFirstView(tables: Tables): FirstView {
  const { axis, peak, ...meta } = tables.meta as FirstViewMeta;
  const rows = tables.table("rows");
  return {
    ...meta,
    length: axis.length,
    peak: peak.position,
    usage: readUsage(tables.table("usage")),
    rows: readRows(rows),
    places: placesTold(rows),
    row: rows.u32("row"),
  };
}

export function readEverything(tables: Tables): Everything {
  const regions = tables.table("regions");
  const rows = readRows(tables.table("rows"));
  const program = readProgram(tables.table("program"));
  const spans = tables.has("spans") ? readSpans(tables.table("spans")) : null;
  return {
    rows: { ...rows, step: stepsOfBirth(rows, program, spans) },
    regions: {
      length: regions.length,
      index: regions.f64("index"),
      kind: regions.text("kind"),
      size: regions.f64("size"),
      base: regions.f64("base"),
      temporary: regions.u8("temporary"),
      start: regions.i32("start"),
      end: regions.i32("end"),
      bounded: true,
    },
    places: placesIn(rows, regions),
    program,
    spans,
  };
}

function readProgram(program: Table): Program {
  return {
    length: program.length,
    name: program.text("name"),
    op: program.text("op"),
    op_name: program.text("op_name"),
    computation: program.text("computation"),
    time_ns: program.has("time_ns") ? program.f64("time_ns") : null,
    unexplained: program.has("unexplained") ? program.f64("unexplained") : null,
  };
}

function readSpans(table: Table): Spans | null {
  if (table.length === 0) return null;
  return {
    length: table.length,
    name: table.text("name"),
    kind: table.u8("kind"),
    start_ns: table.f64("start_ns"),
    end_ns: table.f64("end_ns"),
  };
}
