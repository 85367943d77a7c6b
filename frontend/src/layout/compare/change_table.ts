import type { ComparedEntry, Comparison, WaterfallStep } from "../../payload/generated/answers";
import { type Change, ROLES } from "../../payload/generated/constants";

export const CHANGE_LABELS: Record<Change, string> = {
  only_a: "only in A",
  only_b: "only in B",
  grown: "grown",
  shrunk: "shrunk",
  same: "unchanged",
};

export function delta({ bytes_a, bytes_b }: ComparedEntry): number {
  return bytes_b - bytes_a;
}

/** Return the searched texts of an entry. */
export function entryTexts(entry: ComparedEntry): string[] {
  const { site, name, op, op_name, source, shape, role } = entry;
  return [site, name, op, op_name, source, shape, ROLES[role]];
}

/** The selected change of a comparison: an entry of A, B or both, or a step between the totals. */
export type SelectedChange =
  | { kind: "entry"; entry: ComparedEntry }
  /** `entries` are those that the step counts, the largest changes first. */
  | { kind: "step"; step: WaterfallStep; entries: ComparedEntry[] };

/**
 * Return an entry's name: the rows of its largest allocations in A and in B, "12,34"; "12," if it is in A
 * only.
 */
export function entryName({ row_a, row_b }: ComparedEntry): string {
  return `${row_a ?? ""},${row_b ?? ""}`;
}

/** Return a step's name. Labels can be any text, so a prefix distinguishes steps from entries. */
export function stepName({ label }: Pick<WaterfallStep, "label">): string {
  return `step:${label}`;
}

/**
 * Return null if the comparison has no such change: the name belongs to other recordings or positions, or to
 * an entry that is not listed.
 */
export function findSelectedChange({ entries, steps }: Comparison, name: string): SelectedChange | null {
  if (name === "") return null;
  const entry = entries.find((candidate) => entryName(candidate) === name);
  if (entry !== undefined) return { kind: "entry", entry };
  const number = steps.findIndex((candidate) => stepName(candidate) === name);
  if (number < 0) return null;
  return { kind: "step", step: steps[number], entries: entries.filter(({ step }) => step === number) };
}

/** Return the name of the same change after A and B are swapped. */
export function swapName(name: string): string {
  return name.replace(/^(\d*),(\d*)$/, "$2,$1");
}
