import type { Comparison, Entry, Step } from "../payload/comparison";

/** What of a comparison is looked at: a thing that is in A, B or both, or a step from A's bytes to B's. */
export type LookedAt =
  | { kind: "entry"; entry: Entry }
  /** `entries` are what is counted in it, the largest changes first. */
  | { kind: "step"; step: Step; entries: Entry[] };

/** A thing goes by the rows of its largest allocations in A and in B, "12,34"; one that is only in A by "12,". */
export function entryName({ row_a, row_b }: Entry): string {
  return `${row_a ?? ""},${row_b ?? ""}`;
}

/** Labels of steps may be any text, so that their names are told from those of things by a word before them. */
export function stepName({ label }: Pick<Step, "label">): string {
  return `step:${label}`;
}

/** Null where the comparison has nothing of that name: one of other recordings or moments, or not among the listed. */
export function lookedAt({ entries, steps }: Comparison, name: string): LookedAt | null {
  if (name === "") return null;
  const entry = entries.find((candidate) => entryName(candidate) === name);
  if (entry !== undefined) return { kind: "entry", entry };
  const number = steps.findIndex((candidate) => stepName(candidate) === name);
  if (number < 0) return null;
  return { kind: "step", step: steps[number], entries: entries.filter(({ step }) => step === number) };
}

/** The name of the same when A and B are swapped. */
export function swappedName(name: string): string {
  return name.replace(/^(\d*),(\d*)$/, "$2,$1");
}
