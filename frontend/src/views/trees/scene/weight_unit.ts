import { formatBytes, formatCount, formatExact } from "../../../base/units";
import type { ViewState } from "../../state/view_state";

/** What a weight is, and so how it reads. */
export interface Unit {
  format: (weight: number) => string;
  /** To the last digit. */
  exact: (weight: number) => string;
  /** Heading of a column of a CSV file. */
  column: string;
}

export const BYTES: Unit = { format: formatBytes, exact: formatExact, column: "bytes" };

const NS_PER_S = 1e9;

/** The unit of a weight; `clock`: whether time is in seconds, or else in positions of a schedule. */
export function unitOf(weight: ViewState["tree_weight"], clock: boolean, positions: string): Unit {
  if (weight === "bytes") return BYTES;
  if (clock)
    return {
      format: (value) => `${formatBytes(value / NS_PER_S)}·s`,
      exact: (value) => `${formatCount(value)} byte-nanoseconds`,
      column: "byte_ns",
    };
  return {
    format: (value) => `${formatBytes(value)} × ${positions}`,
    exact: (value) => `${formatCount(value)} bytes × ${positions}`,
    column: `byte_${positions}`,
  };
}
