import type { TextColumn } from "../tables/text_column";

/**
 * Buffer allocations or segments that contain the rows; `base` is the region's offset in bytes on the
 * timeline's y axis.
 */
export interface Regions {
  length: number;
  /** Source's id: a number or an address. */
  index: Float64Array;
  kind: TextColumn;
  size: Float64Array;
  base: Float64Array;
  temporary: Uint8Array;
  /** The region exists at positions [start, end). */
  start: Int32Array;
  end: Int32Array;
  /**
   * Whether regions end where the reserved memory ends. If not, bytes that no row ever used may belong to
   * anything.
   */
  bounded: boolean;
}
