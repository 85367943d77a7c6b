import { REPORTED, type ReportedFigure } from "../generated/constants";
import type { Table } from "../tables/tables";

/** Live bytes for each position, or the minimum and maximum of the bucket that starts there. */
export interface Usage {
  length: number;
  position: Int32Array;
  live_max: Float64Array;
  live_min: Float64Array;
  unpadded_max: Float64Array;
  unpadded_min: Float64Array;
  /** Figures that the allocator reports about itself. */
  reported: readonly ReportedCurve[];
}

/** Maximum and minimum for each bucket, in bytes (fragmentation: a share); NaN if unknown. */
export interface ReportedCurve {
  key: ReportedFigure;
  max: Float64Array;
  min: Float64Array;
}

export function readUsage(table: Table): Usage {
  return {
    length: table.length,
    position: table.i32("position"),
    live_max: table.f64("live_max"),
    live_min: table.f64("live_min"),
    unpadded_max: table.f64("unpadded_max"),
    unpadded_min: table.f64("unpadded_min"),
    reported: REPORTED.filter((key) => table.has(`${key}_max`)).map((key) => ({
      key,
      max: table.f64(`${key}_max`),
      min: table.f64(`${key}_min`),
    })),
  };
}
