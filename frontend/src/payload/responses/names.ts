import type { AdviceList, CallNodes, OverviewRow, Summary } from "../generated/answers";

/** The advice to try first for a recording. */
export interface TopAdvice {
  title: string;
  sentence: string;
  saving_bytes: number;
}

/** Return the best change of a recording's advice; null where there is none. */
export function bestChange({ advice }: AdviceList): TopAdvice | null {
  return advice.at(0) ?? null;
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

/** Return a node's name in pprof's format: `func2`, `func2 train.py:12`. */
export function nodeName(nodes: CallNodes, node: number): string {
  const { function: name, file, line } = nodes;
  const place = line[node] > 0 ? `${file[node]}:${line[node]}` : file[node];
  return [name[node], place].filter((part) => part !== "").join(" ") || "unnamed";
}
