/** Memory of one allocation site from step to step. */
export interface Finding {
  verdict: string;
  sentence: string;
  row: number;
  site: string;
  shape: string;
  live_bytes: number;
}

export interface Leaks {
  /** Why leaks cannot be judged; null if they can. */
  message: string | null;
  unit: string;
  steps: number;
  /** Gradients and optimizer state that survive an iteration of the training loop, in sentences. */
  retained_gradients: string[];
  verdicts: Record<string, number>;
  findings: Finding[];
}
