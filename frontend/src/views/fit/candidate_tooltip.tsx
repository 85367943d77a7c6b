import type { JSX } from "preact";
import { formatBytes, formatLeft } from "../../base/units";
import type { FitCandidate, FitStep } from "../../payload/generated/answers";
import { knobText, leftOf, recomputedText, reservedText, stateOf } from "../../payload/responses/fit";

/** Name a candidate: its value, target, knobs and changes. */
export function candidateName(step: FitStep, { target, value, knobs, change }: FitCandidate): string {
  const searched = step.searched === "" ? [] : [knobText([step.searched, value])];
  return [...searched, ...Object.entries(knobs).map(knobText), change, target].filter(Boolean).join(", ");
}

/** Describe what compiling a candidate gave. */
export function candidateSentence(candidate: FitCandidate): string {
  const { reserved_bytes: reserved, rematerialized, error } = candidate;
  if (reserved === null) return error ?? "No program";
  const left = leftOf(candidate);
  const fits =
    left === null ? "" : left < 0 ? `does not fit, ${formatLeft(left)}` : `${formatLeft(left)} left`;
  const room = error === null ? fits : `does not fit: ${error}`;
  const again = rematerialized > 0 ? `the compiler recomputes ${recomputedText(candidate)}` : "";
  return [`reserves ${reservedText(reserved)}`, room, again].filter(Boolean).join("; ");
}

export function CandidateTooltip(props: {
  step: FitStep;
  candidate: FitCandidate;
  opens: boolean;
}): JSX.Element {
  const { step, candidate, opens } = props;
  const { peak_bytes: peak } = candidate;
  return (
    <>
      <b>{candidateName(step, candidate)}</b>
      <span class={stateOf(candidate) === "fits" || stateOf(candidate) === "recomputes" ? "" : "fit-bad"}>
        {candidateSentence(candidate)}
      </span>
      {peak !== null && <span>peak {formatBytes(peak)}</span>}
      <span class="muted">{opens ? "Click to open its program" : "Click for details"}</span>
    </>
  );
}
