import { formatBytes, formatCount, formatExact } from "../../../base/units";
import type { ViewState } from "../../state/view_state";

/** Unit of a weight, and its format. */
export interface Unit {
  format: (weight: number) => string;
  /** Exact value as text. */
  exact: (weight: number) => string;
  /** Heading of a CSV column. */
  column: string;
}

export const BYTES: Unit = { format: formatBytes, exact: formatExact, column: "bytes" };

const NS_PER_S = 1e9;

/** Return the unit of a weight; `clock`: time is in seconds, otherwise in positions of a schedule. */
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
