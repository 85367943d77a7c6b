import type { TextColumn } from "../tables/text_column";

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
