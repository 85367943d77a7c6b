interface Amount {
  allocations: number;
  bytes: number;
}

/** Allocations made by executions of programs over all events, and the programs that run at one position. */
export interface RuntimeToProgram {
  at: number;
  executable: Amount;
  /** Allocations without a matching planned allocation. */
  unjoined: Amount;
  programs: ({ recording: string; title: string; memory: string; running: boolean } & Amount)[];
}

/** Contents of a runtime allocation according to the program's plan. */
export interface PlannedAllocation {
  title: string;
  memory: string;
  kind: string;
  size: number;
  buffers: { row: number; name: string; op_name: string; size: number }[];
  buffers_total: number;
}
