import type { Summary } from "../recording/summary";

/** One piece of advice that lowers the peak: what to change, whose memory it affects, and what it saves. */
export interface Advice {
  kind: string;
  title: string;
  sentence: string;
  /** The change as code or close to it; may be empty. */
  change: string;
  bytes: number;
  saving_bytes: number;
  new_peak_bytes: number;
  /** Row numbers that it affects, as ranges of first and last number. */
  rows: [number, number][];
  rows_total: number;
}

export interface AdviceList {
  /** Largest saving first. */
  advice: Advice[];
  peak_bytes: number;
}

/** Result of reading pasted text. */
export interface PasteResult {
  recordings: Summary[];
  run: string;
  /** Explanation of the text in plain words. */
  explanation: string[];
  /** Why nothing could be read; null on success. */
  message: string | null;
}
