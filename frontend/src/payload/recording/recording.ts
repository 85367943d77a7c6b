import type { Tables } from "../tables/tables";
import { type Addresses, addressesFromRegions, addressesFromColumns } from "./addresses";
import { allocationSteps } from "./allocation_step";
import type { OutOfMemory } from "../generated/answers";
import { type Program, readProgram } from "./program";
import type { Regions } from "./regions";
import { readRows, type Rows } from "./rows";
import { readSpans, type Spans } from "./spans";
import type { Caveat, Figure, Summary } from "../generated/answers";
import { readUsage, type Usage } from "./usage";

/** Response of api/memory_viewer and api/memory_profile. */
export interface FirstView {
  recording: Summary;
  length: number;
  headline: string;
  figures: Figure[];
  caveats: Caveat[];
  /** The out-of-memory failure; null unless the recording is an error. */
  out_of_memory: OutOfMemory | null;
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

interface FirstViewMeta {
  recording: Summary;
  axis: { length: number };
  headline: string;
  figures: Figure[];
  caveats: Caveat[];
  out_of_memory: OutOfMemory | null;
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
    addresses: addressesFromColumns(rows),
    row: rows.u32("row"),
  };
}

export function readRecordingData(tables: Tables): RecordingData {
  const regions = tables.table("regions");
  const rows = readRows(tables.table("rows"));
  const program = readProgram(tables.table("program"));
  const spans = tables.has("spans") ? readSpans(tables.table("spans")) : null;
  return {
    rows: { ...rows, step: allocationSteps(rows, program, spans) },
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
    addresses: addressesFromRegions(rows, regions),
    program,
    spans,
  };
}
