import type { Summary } from "../recording/summary";

/** One recording of a run, with what is beside it taken into account. Sizes in bytes; null where unknown. */
export interface OverviewRow extends Summary {
  /** What must fit: all that a program reserves, or the most that an allocator held. */
  needed_bytes: number;
  /** Who tells the capacity, in words; empty where nobody does. */
  capacity_source: string;
  /** Below 0 where it does not fit. */
  headroom_bytes: number | null;
  role: { role: number; bytes: number; share: number } | null;
  /** The layers, function or line that hold most at the peak. */
  part: { name: string; repeats: number; bytes: number; share: number } | null;
  /** Of an error: what would help, as far as its text tells. */
  remedy: string | null;
}

export interface ResidentProgram {
  id: string;
  title: string;
  held_bytes: number;
  /** Of these, arguments that a larger program has too. */
  again_bytes: number;
  temporary_bytes: number;
  runs: number | null;
}

/** The programs that were in one memory of a host, the largest first. */
export interface CoResidency {
  host: string;
  memory: string;
  bytes: number;
  /** How `bytes` was worked out, and what it is worth. */
  sentence: string;
  programs: ResidentProgram[];
  measured: { id: string; memory: string; bytes: number }[];
}

export interface Overview {
  headline: string;
  rows: OverviewRow[];
  together: CoResidency[];
}

/** What the advice that saves most says of a recording. */
export interface TopAdvice {
  title: string;
  sentence: string;
  saving_bytes: number;
}

/** By id of the recording: null where there is nothing to advise; absent where it is not known, or not yet. */
export type AdviceById = ReadonlyMap<string, TopAdvice | null>;

/** What a recording is called beside others: a program or a file by its name, memory over time by the memory's. */
export function recordingName({ axis, title, memory }: Summary): string {
  return axis === "TIME" ? memory : title;
}

/** A Python frame as `a.<locals>.name (folder/file.py:12)`: what tells it from others comes last. */
const FRAME = /^(?:.*[.>])?([^.>\s]+) \((?:.*\/)?([^/]+:\d+)\)$/;

/** `layer_* ×48`, or the short name of a frame: `step (train.py:12)`. */
export function partText({ part }: OverviewRow): string {
  if (part === null) return "";
  const frame = FRAME.exec(part.name);
  if (frame !== null) return `${frame[1]} (${frame[2]})`;
  return part.name.includes("*") && part.repeats > 1 ? `${part.name} ×${part.repeats}` : part.name;
}
