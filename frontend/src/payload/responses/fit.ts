import { formatBytes, formatCount, formatSeconds, formatShare } from "../../base/units";
import type { FitCandidate, FitChoice, FitStep } from "../generated/answers";

/** The outcome of compiling a candidate: a program that fits, without or with instructions that the compiler runs
 * twice, a program that does not fit, or no program. */
export type CandidateState = "fits" | "recomputes" | "refused" | "failed";

export function stateOf({ fits, reserved_bytes: reserved, rematerialized }: FitCandidate): CandidateState {
  if (reserved === null) return "failed";
  return fits ? (rematerialized > 0 ? "recomputes" : "fits") : "refused";
}

export const STATE_TEXT: Record<CandidateState, string> = {
  fits: "fits",
  recomputes: "fits",
  refused: "does not fit",
  failed: "failed",
};

/** Return the bytes below the limit, negative if the candidate does not fit; null if either is unknown. */
export function leftOf({ limit_bytes: limit, reserved_bytes: reserved }: FitCandidate): number | null {
  return limit === null || reserved === null ? null : limit - reserved;
}

/** Return the key of a step in the URL: its function, and the searched knob. */
export function stepKey({ step, searched }: FitStep): string {
  return searched === "" ? step : `${step} ${searched}`;
}

/** Return a step's name in a list: the function's file without its folder. */
export function stepName({ step, searched }: FitStep): string {
  const name = step.replace(/^.*[/\\]/, "");
  return searched === "" ? name : `${name}, ${searched}`;
}

/** Return the key of a choice in the URL, which names the same choice when candidates are added. */
export function choiceKey({ target, knobs, changes }: FitChoice): string {
  return [target, ...Object.entries(knobs).map(knobText), ...changes].join(" ");
}

export function knobText([name, value]: [string, FitCandidate["value"]]): string {
  return `${name}=${String(value)}`;
}

/** Return a function that names a choice by its differences from the step's other choices. */
export function choiceNamer(step: FitStep): (choice: FitChoice) => string {
  const { choices } = step;
  const differ = (read: (choice: FitChoice) => unknown): boolean => new Set(choices.map(read)).size > 1;
  const named = knobNames(step).filter((name) => differ(({ knobs }) => knobs[name]));
  const targets =
    differ(({ target }) => target) || (named.length === 0 && !differ(({ changes }) => changes.join("\n")));
  return (choice) => {
    const knobs = Object.entries(choice.knobs).filter(([name]) => named.includes(name));
    const parts = [
      ...(targets ? [choice.target] : []),
      ...knobs.map(knobText),
      ...(choice.change === "" ? [] : [choice.change]),
    ];
    return parts.join(", ") || choice.target;
  };
}

/** Name the largest value of a choice. With a change, only values from the largest one without it are tried. */
export function largestText(value: FitCandidate["value"] | undefined, first: FitCandidate): string {
  if (value !== undefined) return String(value);
  return first.changes.length > 0 && first.value !== null ? `below ${String(first.value)}` : "none fits";
}

/** Return the names of all knobs other than the searched one. */
export function knobNames({ choices }: FitStep): string[] {
  return [...new Set(choices.flatMap(({ knobs }) => Object.keys(knobs)))];
}

/** Format the instructions that the compiler runs twice: "71 instructions, 12% of FLOPs". */
export function recomputedText({ rematerialized, rematerialized_flops: flops }: FitCandidate): string {
  return flops > 0
    ? `${formatCount(rematerialized)}, ${formatShare(flops, 1)} of FLOPs`
    : formatCount(rematerialized);
}

/** Format an estimated time with the two digits that it has, and what of the chip it uses: "84 ms, 41% MFU". */
export function stepTimeText({ step_seconds: seconds, utilization }: FitCandidate): string {
  return `${formatSeconds(seconds)}, ${formatShare(utilization, 1)} MFU`;
}

/**
 * Format the shares of an estimated time, the largest first: of what binds it, "memory 56%, other devices 43%"; of
 * kinds of work, "recomputation 29%, copies 4%".
 */
export function sharesText(parts: Record<string, number>, total: number): string {
  return Object.entries(parts)
    .sort(([, a], [, b]) => b - a)
    .map(([name, seconds]) => `${name} ${formatShare(seconds, total)}`)
    .join(", ");
}

/** Format an estimated rate with the two digits that it has: "370,000", "84" or "0.42". */
export function rateText(rate: number): string {
  return Number(rate.toPrecision(2)).toLocaleString("en-US");
}

/** Format reserved bytes, or their limit, with one digit more than usual, because the two may differ by little. */
export function reservedText(bytes: number): string {
  return formatBytes(bytes, 4);
}

/** Return the versions of all candidates, each once: "jax 0.12.0, libtpu 0.0.52". */
export function versionTexts({ candidates }: FitStep): string[] {
  const text = ({ versions }: FitCandidate): string =>
    Object.entries(versions)
      .map(([name, version]) => `${name} ${version}`)
      .join(", ");
  return [...new Set(candidates.map(text))].filter((found) => found !== "");
}
