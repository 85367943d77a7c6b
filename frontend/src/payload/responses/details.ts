import type { PlannedAllocation } from "./runtime_to_program";

export interface SchedulePoint {
  position: number;
  instruction: string;
}

export interface StackFrame {
  function: string;
  file: string;
  line: number;
}

export interface Sharer {
  row: number;
  name: string;
  size: number;
  defined: number;
  last_used: number;
  relation: string;
}

/** One buffer in full: what its row says, and what only api/details knows. */
export interface Details {
  row: number;
  name: string;
  op: string;
  op_name: string;
  role: number;
  size: number;
  unpadded: number;
  shape: string;
  dtype: string;
  region: { index: number; kind: string; size: number } | null;
  offset: number;
  defined: SchedulePoint;
  last_used: SchedulePoint;
  stack: StackFrame[];
  /** Of the event that freed it; empty where none is known. */
  freed_stack: StackFrame[];
  shares: Sharer[];
  shares_total: number;
  /** Of a runtime allocation that a program's execution made; null where none is known. */
  planned?: PlannedAllocation | null;
}
