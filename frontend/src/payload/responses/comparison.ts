import type { Summary } from "../recording/summary";

/** Groupings of the steps from one total to the other. */
export const COMPARE_BY = ["role", "model", "source"] as const;
export type CompareBy = (typeof COMPARE_BY)[number];

export const CHANGES = ["only_a", "only_b", "grown", "shrunk", "same"] as const;
export type Change = (typeof CHANGES)[number];

export interface ComparedSide {
  recording: Summary;
  position: number;
  length: number;
  time_ns: number | null;
  /** Live bytes at the position. */
  bytes: number;
}

export interface WaterfallStep {
  label: string;
  bytes_a: number;
  bytes_b: number;
}

/** One thing in either or both recordings, with the same model path, source, operation and shape. */
export interface ComparedEntry {
  change: Change;
  site: string;
  name: string;
  op: string;
  op_name: string;
  source: string;
  role: number;
  dtype: string;
  shape: string;
  /** Shape in A, if it changed. */
  shape_before: string;
  row_a: number | null;
  row_b: number | null;
  bytes_a: number;
  bytes_b: number;
  allocations_a: number;
  allocations_b: number;
  /** Index of the step that includes the entry's largest allocation; -1 for none. */
  step: number;
}

export interface Comparison {
  headline: string;
  a: ComparedSide;
  b: ComparedSide;
  by: CompareBy;
  /** Steps whose changes sum to the difference of the totals. */
  steps: WaterfallStep[];
  changes: Record<Change, { entries: number; bytes: number }>;
  /** Largest changes first. */
  entries: ComparedEntry[];
  entries_total: number;
  left_out_bytes: number;
}

export interface CompareQuery {
  a: string;
  b: string;
  /** Null means the peak. */
  at_a: number | null;
  at_b: number | null;
  by: CompareBy;
}
