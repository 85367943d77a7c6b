import type { Comparison, ComparedEntry, WaterfallStep } from "../../payload/responses/comparison";

/** What of a comparison is looked at: a thing that is in A, B or both, or a step from A's bytes to B's. */
export type SelectedChange =
  | { kind: "entry"; entry: ComparedEntry }
  /** `entries` are what is counted in it, the largest changes first. */
  | { kind: "step"; step: WaterfallStep; entries: ComparedEntry[] };

/** A thing goes by the rows of its largest allocations in A and in B, "12,34"; one that is only in A by "12,". */
export function entryName({ row_a, row_b }: ComparedEntry): string {
  return `${row_a ?? ""},${row_b ?? ""}`;
}

/** Labels of steps may be any text, so that their names are told from those of things by a word before them. */
export function stepName({ label }: Pick<WaterfallStep, "label">): string {
  return `step:${label}`;
}

/** Null where the comparison has nothing of that name: one of other recordings or moments, or not among the listed. */
export function findSelectedChange({ entries, steps }: Comparison, name: string): SelectedChange | null {
  if (name === "") return null;
  const entry = entries.find((candidate) => entryName(candidate) === name);
  if (entry !== undefined) return { kind: "entry", entry };
  const number = steps.findIndex((candidate) => stepName(candidate) === name);
  if (number < 0) return null;
  return { kind: "step", step: steps[number], entries: entries.filter(({ step }) => step === number) };
}

/** The name of the same when A and B are swapped. */
export function swapName(name: string): string {
  return name.replace(/^(\d*),(\d*)$/, "$2,$1");
}
