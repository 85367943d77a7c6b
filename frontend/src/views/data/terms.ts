import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Summary } from "../../payload/generated/answers";

/** What things are called: a program holds buffers at positions of its schedule, an allocator allocations at events. */
export interface Terms {
  item: string;
  items: string;
  position: string;
  positions: string;
  /** What the x axis runs over. */
  extent: string;
  live: string;
  requested: string;
  /** What a size holds beside what was asked for. */
  excess: string;
  /** What the rows are in order of. */
  order: string;
  /** What the columns `op` and `op_name` of a row are. */
  op: string;
  op_name: string;
  /** What a tree of that column is by. */
  function_label: string;
  /** What a row without an `op` has of it; empty where that is not known. */
  default_op: string;
  /** What is in use and has no row. */
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
  order: "program order",
  op: "Op",
  op_name: "Op name",
  function_label: "jitted function",
  default_op: "",
  unexplained: "not explained by any buffer",
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
  order: "order of events",
  op: "Region",
  op_name: "Function",
  function_label: "jitted function",
  default_op: "",
  unexplained: "stack, or not explained by any allocation",
};

/** Of PyTorch: tensors, whose pool and stream are the default ones where nothing else is said. */
export const TORCH_TERMS: Terms = {
  ...ALLOCATOR_TERMS,
  op: "Pool, stream",
  op_name: "Marked as",
  function_label: "mark",
  default_op: "the default ones",
  unexplained: "not explained by any allocation",
};

/** Of one moment: what an error or a snapshot lists. */
export const SNAPSHOT_TERMS: Terms = {
  item: "buffer",
  items: "buffers",
  position: "moment",
  positions: "moments",
  extent: "moment",
  live: "in use",
  requested: "unpadded",
  excess: "padding",
  order: "order in the file",
  op: "Op",
  op_name: "Op name",
  function_label: "jitted function",
  default_op: "",
  unexplained: "not listed",
};

/** Those of a recording along an axis. */
export function termsOf({ axis, kind }: Summary): Terms {
  if (axis !== "TIME") return PROGRAM_TERMS;
  return kind === "torch_snapshot" ? TORCH_TERMS : ALLOCATOR_TERMS;
}

export const TermsContext = createContext(PROGRAM_TERMS);

export function useTerms(): Terms {
  return useContext(TermsContext);
}

/** At the beginning of a sentence or as a heading. */
export function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
