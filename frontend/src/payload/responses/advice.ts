import type { Summary } from "../recording/summary";

/** One thing that would lower the peak: what to change, whose memory it is about, and what that saves. */
export interface Advice {
  kind: string;
  title: string;
  sentence: string;
  /** The change, as code or close to it; may be empty. */
  change: string;
  bytes: number;
  saving_bytes: number;
  new_peak_bytes: number;
  /** The numbers of the rows that it is about, as ranges: first and last of each. */
  rows: [number, number][];
  rows_total: number;
}

export interface AdviceList {
  /** By what they save, most first. */
  advice: Advice[];
  peak_bytes: number;
}

/** What was read from a text that someone pasted. */
export interface PasteResult {
  recordings: Summary[];
  run: string;
  /** The text in plain words. */
  explanation: string[];
  /** Why nothing could be read from it; null where something was. */
  message: string | null;
}
