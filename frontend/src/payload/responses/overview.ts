import type { Summary } from "../recording/summary";

/**
 * One recording of a run with figures that depend on the other recordings. Sizes in bytes; null if unknown.
 */
export interface OverviewRow extends Summary {
  /** Bytes that must fit: the reservation of a program, or the peak of an allocator. */
  needed_bytes: number;
  /** Where the capacity comes from, in words; empty if it is unknown. */
  capacity_source: string;
  /** Negative if the recording does not fit. */
  headroom_bytes: number | null;
  role: { role: number; bytes: number; share: number } | null;
  /** Layers, function or line with the most bytes at the peak. */
  part: { name: string; repeats: number; bytes: number; share: number } | null;
  /** For out-of-memory failures: what would help, based on the error text. */
  remedy: string | null;
}

export interface ResidentProgram {
  id: string;
  title: string;
  held_bytes: number;
  /** Part of the persistent bytes that are arguments shared with a larger program. */
  again_bytes: number;
  temporary_bytes: number;
  runs: number | null;
}

/** Programs that shared one memory of a host, largest first. */
export interface CoResidency {
  host: string;
  memory: string;
  bytes: number;
  /** How `bytes` was computed, and how reliable it is. */
  sentence: string;
  programs: ResidentProgram[];
  measured: { id: string; memory: string; bytes: number }[];
}

export interface Overview {
  headline: string;
  rows: OverviewRow[];
  together: CoResidency[];
}

/** The advice with the largest saving for a recording. */
export interface TopAdvice {
  title: string;
  sentence: string;
  saving_bytes: number;
}

/** Advice by recording id: null if there is none, absent if it is unknown or still loading. */
export type AdviceById = ReadonlyMap<string, TopAdvice | null>;

/**
 * Return the name of a recording in a list: a program's or file's title, or the memory's name for memory over
 * time.
 */
export function recordingName({ axis, title, memory }: Summary): string {
  return axis === "TIME" ? memory : title;
}

/** A Python frame such as `a.<locals>.name (folder/file.py:12)`; the end distinguishes it from others. */
const FRAME = /^(?:.*[.>])?([^.>\s]+) \((?:.*\/)?([^/]+:\d+)\)$/;

/** Format the largest part: `layer_* ×48`, or the short name of a frame: `step (train.py:12)`. */
export function partText({ part }: OverviewRow): string {
  if (part === null) return "";
  const frame = FRAME.exec(part.name);
  if (frame !== null) return `${frame[1]} (${frame[2]})`;
  return part.name.includes("*") && part.repeats > 1 ? `${part.name} ×${part.repeats}` : part.name;
}
