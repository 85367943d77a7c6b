interface Amount {
  allocations: number;
  bytes: number;
}

/** What executions of programs allocated, over all events, and which programs run at one of them. */
export interface RuntimeToProgram {
  at: number;
  executable: Amount;
  /** Of these what no planned memory was found for. */
  unjoined: Amount;
  programs: ({ recording: string; title: string; memory: string; running: boolean } & Amount)[];
}

/** What a program planned in an allocation that it made. */
export interface PlannedAllocation {
  title: string;
  memory: string;
  kind: string;
  size: number;
  buffers: { row: number; name: string; op_name: string; size: number }[];
  buffers_total: number;
}
