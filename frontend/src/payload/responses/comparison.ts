import type { Summary } from "../recording/summary";

/** What the steps from one total to the other are. */
export const COMPARE_BY = ["role", "model", "source"] as const;
export type CompareBy = (typeof COMPARE_BY)[number];

export const CHANGES = ["only_a", "only_b", "grown", "shrunk", "same"] as const;
export type Change = (typeof CHANGES)[number];

export interface ComparedSide {
  recording: Summary;
  position: number;
  length: number;
  time_ns: number | null;
  /** Live at the position. */
  bytes: number;
}

export interface WaterfallStep {
  label: string;
  bytes_a: number;
  bytes_b: number;
}

/** One thing in either or both: the same model path, source, operation and shape. */
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
  /** Where it changed its shape: what that was. */
  shape_before: string;
  row_a: number | null;
  row_b: number | null;
  bytes_a: number;
  bytes_b: number;
  allocations_a: number;
  allocations_b: number;
  /** Which of the steps its largest allocation is counted in; -1 for none. */
  step: number;
}

export interface Comparison {
  headline: string;
  a: ComparedSide;
  b: ComparedSide;
  by: CompareBy;
  /** Their changes add up to that from the one total to the other. */
  steps: WaterfallStep[];
  changes: Record<Change, { entries: number; bytes: number }>;
  /** The largest changes first. */
  entries: ComparedEntry[];
  entries_total: number;
  left_out_bytes: number;
}

export interface CompareQuery {
  a: string;
  b: string;
  /** Null is the peak. */
  at_a: number | null;
  at_b: number | null;
  by: CompareBy;
}
