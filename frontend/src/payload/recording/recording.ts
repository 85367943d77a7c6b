import type { Caveat, Figure, OutOfMemory, RecordingVerdict, Summary } from "../generated/answers";
import { REPORTED, type ReportedFigure, STEP_SPAN } from "../generated/constants";
import type { ColumnsOf, Table, Tables } from "../tables/tables";
import { blankColumn, dictionaryOf, NO_TEXT, TextColumn } from "../tables/text_column";
import {
  type Addresses,
  addressesFromColumns,
  addressesFromRegions,
  readRows,
  REGION_COLUMNS,
  type Regions,
  type Rows,
} from "./rows";

/** Columns of positions: instructions of the flattened schedule, or events of an allocator. */
export const PROGRAM_COLUMNS = { name: "text", op: "text", op_name: "text", computation: "text" } as const;

/** Positions of a recording. */
export interface Program extends ColumnsOf<typeof PROGRAM_COLUMNS> {
  length: number;
  /** Time of each event in ns since the profile started, never decreasing; null for a schedule, which has no clock. */
  time_ns: Float64Array | null;
  /** Bytes in use at each event that no row explains; null if rows explain all bytes. */
  unexplained: Float64Array | null;
}

function readProgram(program: Table): Program {
  return {
    ...program.read(PROGRAM_COLUMNS),
    time_ns: program.has("time_ns") ? program.f64("time_ns") : null,
    unexplained: program.has("unexplained") ? program.f64("unexplained") : null,
  };
}

/** Columns of spans; times are nanoseconds, as in `Program`. */
const SPAN_COLUMNS = { name: "text", kind: "u8", start_ns: "f64", end_ns: "f64" } as const;

/** Named time ranges: training steps, executions of programs, and user annotations. */
export interface Spans extends ColumnsOf<typeof SPAN_COLUMNS> {
  length: number;
}

/** Columns of usage: live bytes at each position, or the minimum and maximum of the bucket that starts there. */
const USAGE_COLUMNS = {
  position: "i32",
  live_max: "f64",
  live_min: "f64",
  unpadded_max: "f64",
  unpadded_min: "f64",
} as const;

/** Live bytes over the positions. */
export interface Usage extends ColumnsOf<typeof USAGE_COLUMNS> {
  length: number;
  /** Figures that the allocator reports about itself. */
  reported: readonly ReportedCurve[];
}

/** Maximum and minimum for each bucket, in bytes (fragmentation: a share); NaN if unknown. */
interface ReportedCurve {
  key: ReportedFigure;
  max: Float64Array;
  min: Float64Array;
}

export function readUsage(table: Table): Usage {
  return {
    ...table.read(USAGE_COLUMNS),
    reported: REPORTED.filter((key) => table.has(`${key}_max`)).map((key) => ({
      key,
      max: table.f64(`${key}_max`),
      min: table.f64(`${key}_min`),
    })),
  };
}

const BEFORE = "before the first step";
const BETWEEN = "between steps";

/**
 * Return the step in which each row was allocated; dictionary entries are in the order of the steps. The text
 * is empty for rows allocated before the recording, and for all rows if the profile has no steps. Where steps
 * overlap, the step that started last counts.
 */
export function allocationSteps(rows: Rows, { time_ns }: Program, spans: Spans | null): TextColumn {
  const steps = spans === null ? [] : [...spans.kind.keys()].filter((span) => spans.kind[span] === STEP_SPAN);
  if (spans === null || time_ns === null || steps.length === 0) return blankColumn(rows.length);
  const { start_ns, end_ns, name } = spans;
  steps.sort((a, b) => start_ns[a] - start_ns[b]);
  const starts = Float64Array.from(steps, (span) => start_ns[span]);
  const codes = new Uint32Array(rows.length).fill(NO_TEXT);
  // Codes after the last step mean "outside any step".
  const [before, between] = [steps.length, steps.length + 1];
  for (let row = 0; row < rows.length; row++) {
    if (rows.start[row] < 0) continue;
    const born = time_ns[rows.start[row]];
    let step = lastAtOrBefore(starts, born);
    if (step < 0) codes[row] = before;
    else {
      while (step >= 0 && end_ns[steps[step]] < born) step--;
      codes[row] = step < 0 ? between : step;
    }
  }
  return new TextColumn(
    codes,
    dictionaryOf([...distinctNames(steps.map((span) => name.at(span))), BEFORE, BETWEEN]),
  );
}

/** Number the steps if their names alone do not distinguish them. */
function distinctNames(names: string[]): string[] {
  const apart = new Set(names).size === names.length;
  return names.map((name, step) => (apart && name !== "" ? name : `${name || "step"} #${step}`));
}

/** Return the index of the last ascending value that is at most `value`, or -1 if there is none. */
function lastAtOrBefore(values: Float64Array, value: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

interface FirstViewMeta {
  recording: Summary;
  axis: { length: number };
  verdict: RecordingVerdict;
  figures: Figure[];
  caveats: Caveat[];
  /** The out-of-memory failure; null unless the recording is an error. */
  out_of_memory: OutOfMemory | null;
  peak: { position: number };
}

/** Response of api/memory_viewer and api/memory_profile. */
export interface FirstView extends Omit<FirstViewMeta, "axis" | "peak"> {
  length: number;
  peak: number;
  usage: Usage;
  rows: Rows;
  addresses: Addresses;
  /** Row number in api/rows of each row in `rows`. */
  row: Uint32Array;
}

/** Response of api/rows. */
export interface RecordingData {
  rows: Rows;
  regions: Regions;
  addresses: Addresses;
  program: Program;
  /** Null if the profile has no named spans. */
  spans: Spans | null;
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
    addresses: addressesFromColumns(rows),
    row: rows.u32("row"),
  };
}

export function readRecordingData(tables: Tables): RecordingData {
  const regions = tables.table("regions");
  const rows = readRows(tables.table("rows"));
  const program = readProgram(tables.table("program"));
  const spans = tables.has("spans") ? tables.table("spans").read(SPAN_COLUMNS) : null;
  return {
    rows: { ...rows, step: allocationSteps(rows, program, spans) },
    regions: { ...regions.read(REGION_COLUMNS), bounded: true },
    addresses: addressesFromRegions(rows, regions),
    program,
    spans: spans?.length === 0 ? null : spans,
  };
}
