import type { Summary } from "../recording/summary";

export interface Runs {
  logdir: string;
  runs: { name: string; hosts: string[] }[];
  /** Why the list is empty and what to do; null if it is not empty. */
  message: string | null;
}

/** A file that could not be read, and why. */
export interface Problem {
  file: string;
  text: string;
}

export interface Listing {
  recordings: Summary[];
  problems: Problem[];
  /** By host: why it has no recording over time. Empty if any host has one. */
  empty: Record<string, Reason>;
}

/** Why there is no data, and what to do. The code is for programs. */
export interface Reason {
  code: string;
  text: string;
  remedy: string;
}
