import { formatShare } from "../base/units";
import type { FitCandidate, FitStep } from "../payload/generated/answers";
import { ROLES } from "../payload/generated/constants";
import { knobText, STATE_TEXT, stateOf } from "../payload/responses/fit";

/** A line of the table of largest values: a choice, and the candidates with its largest values. */
export interface LargestLine {
  choice: number;
  /** The largest that fits; null if none does. */
  largest: FitCandidate | null;
  /** The largest is the last that was compiled: a larger one may fit. */
  isEnd: boolean;
  /** The largest before the compiler runs instructions twice. */
  without: FitCandidate | null;
  /** The candidate to name: the largest, else the first. */
  named: FitCandidate;
}

export function largestLines({ choices, candidates }: FitStep): LargestLine[] {
  return choices.flatMap(({ candidate, at_end: isEnd, without_recomputation: without }, choice) => {
    const named =
      candidate === null ? candidates.find((each) => each.choice === choice) : candidates[candidate];
    if (named === undefined) return [];
    return {
      choice,
      largest: candidate === null ? null : candidates[candidate],
      isEnd,
      without: without === null ? null : candidates[without],
      named,
    };
  });
}

/** Return the searched texts of a candidate. */
export function candidateTexts(each: FitCandidate, searched: string): string[] {
  return [
    each.target,
    ...Object.entries({ ...each.knobs, [searched]: each.value }).map(knobText),
    ...each.changes,
    each.change,
    STATE_TEXT[stateOf(each)],
    each.error ?? "",
  ];
}

/** Parts that the table names; the side panel lists all. */
const MAX_PARTS = 3;
const MIN_SHARE = 0.01;

/** Return the parts with the most bytes at the peak, else roles: "activations of layer_* 71%, logits 20%". */
export function boundBy({ parts, roles, peak_bytes: peak }: FitCandidate): string | null {
  if (peak === null || peak === 0) return null;
  const named = parts.length > 0 ? parts : roles.map(({ role, bytes }) => ({ name: ROLES[role], bytes }));
  const texts = named
    .slice(0, MAX_PARTS)
    .filter(({ bytes }) => bytes / peak >= MIN_SHARE)
    .map(({ name, bytes }) => `${name} ${formatShare(bytes, peak)}`);
  return texts.length === 0 ? null : texts.join(", ");
}
