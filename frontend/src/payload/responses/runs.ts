import type { Summary } from "../recording/summary";

export interface Runs {
  logdir: string;
  runs: { name: string; hosts: string[] }[];
  /** Why there is nothing and what to do, when there is nothing. */
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
  /** By host: why it has no recording over time. Empty where any host has one. */
  empty: Record<string, Reason>;
}

/** Why there is nothing, and what to do; the code is for programs. */
export interface Reason {
  code: string;
  text: string;
  remedy: string;
}
