import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Axis } from "../../layout/axis";
import type { Summary } from "../../payload/generated/answers";

/** Terms for a kind of recording: programs have buffers and positions, allocators have allocations and events. */
export interface Terms {
  item: string;
  items: string;
  position: string;
  positions: string;
  /** Unit of the x axis. */
  extent: string;
  live: string;
  requested: string;
  /** The part of a size beyond the requested bytes. */
  excess: string;
  /** Headings of the columns `op` and `op_name`. */
  op: string;
  op_name: string;
  /** Name of the classification by that column. */
  function_label: string;
  /** Value of `op` for rows without one; empty if unknown. */
  default_op: string;
  /** Label of live bytes without a row. */
  unexplained: string;
}

export const PROGRAM_TERMS: Terms = {
  item: "buffer",
  items: "buffers",
  position: "position",
  positions: "positions",
  extent: "program",
  live: "live",
  requested: "unpadded",
  excess: "padding",
  op: "Op",
  op_name: "Op name",
  function_label: "jitted function",
  default_op: "",
  unexplained: "unexplained by any buffer",
};

export const ALLOCATOR_TERMS: Terms = {
  item: "allocation",
  items: "allocations",
  position: "event",
  positions: "events",
  extent: "recording",
  live: "in use",
  requested: "requested",
  excess: "rounding",
  op: "Region",
  op_name: "Function",
  function_label: "jitted function",
  default_op: "",
  unexplained: "stack, or unexplained by any allocation",
};

/** Samples of a job's memory. */
const WATCH_TERMS: Terms = { ...ALLOCATOR_TERMS, position: "sample", positions: "samples", extent: "job" };

/** PyTorch tensors; pool and stream are the defaults unless recorded. */
const TORCH_TERMS: Terms = {
  ...ALLOCATOR_TERMS,
  op: "Pool, stream",
  op_name: "Marked as",
  function_label: "mark",
  default_op: "default",
  unexplained: "unexplained by any allocation",
};

/** Snapshots and out-of-memory errors, which list memory at one moment. */
export const SNAPSHOT_TERMS: Terms = {
  ...PROGRAM_TERMS,
  position: "moment",
  positions: "moments",
  extent: "moment",
  live: "in use",
  unexplained: "not listed by the text",
};

/** Return the terms for a recording. */
export function termsOf({ axis, kind }: Summary): Terms {
  if (axis !== "TIME") return PROGRAM_TERMS;
  if (kind === "watch") return WATCH_TERMS;
  return kind === "torch_snapshot" ? TORCH_TERMS : ALLOCATOR_TERMS;
}

export const TermsContext = createContext(PROGRAM_TERMS);

export function useTerms(): Terms {
  return useContext(TermsContext);
}

/** Return the title of the x axis. */
export function axisTitle({ position, extent }: Terms, { clock, measure }: Axis): string {
  return clock === null ? `${position} in the ${extent}` : `${measure} since the ${extent} began`;
}

/** Capitalize the first letter. */
export function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
