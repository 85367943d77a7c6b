/** How one place's memory went from step to step. */
export interface Finding {
  verdict: string;
  sentence: string;
  row: number;
  site: string;
  shape: string;
  live_bytes: number;
}

export interface Leaks {
  /** Why nothing can be said; null where something can. */
  message: string | null;
  unit: string;
  steps: number;
  /** What a training loop carries from one iteration into the next, in sentences. */
  carried: string[];
  verdicts: Record<string, number>;
  findings: Finding[];
}
