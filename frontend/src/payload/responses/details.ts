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

/** All details of a buffer: its row, and data that only api/details returns. */
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
  /** Call stack of the event that freed it; empty if unknown. */
  freed_stack: StackFrame[];
  shares: Sharer[];
  shares_total: number;
  /** For a runtime allocation made by a program's execution; null if unknown. */
  planned?: PlannedAllocation | null;
}
