import { formatBytes, formatLeft } from "../../base/units";
import type { Api } from "../../payload/api";
import type { FitCandidate, FitStep, Summary } from "../../payload/generated/answers";
import type { Signal } from "../../payload/request";
import { knobText, leftOf, recomputedText, reservedText, stateOf } from "../../payload/responses/fit";
import { openRecording } from "../state/open_recording";
import { NEW_COMPARISON, NEW_RECORDING, store } from "../state/view_state";

/** What charts and tables do with a candidate. */
export interface CandidateActions {
  open: (candidate: FitCandidate) => void;
  /** Null where nothing can be compared, as in a report. */
  tick: ((candidate: FitCandidate) => void) | null;
  /** Its program is in the logdir. */
  isCompiled: (candidate: FitCandidate) => boolean;
}

/** What charts and tables of a step share. */
export interface SectionProps {
  step: FitStep;
  actions: CandidateActions;
}

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

export function CandidateTooltip(props: { step: FitStep; candidate: FitCandidate; opens: boolean }) {
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

/** Open the compiled program of a candidate. */
export async function openCandidate(api: Api, candidate: FitCandidate, signal: Signal = null): Promise<void> {
  openRecording(await programOf(api, candidate, signal));
}

/** Compare the programs of two candidates. */
export async function compareCandidates(
  api: Api,
  pair: readonly [FitCandidate, FitCandidate],
  signal: Signal = null,
): Promise<void> {
  const [a, b] = await Promise.all(pair.map((each) => programOf(api, each, signal)));
  store.set({
    tab: "compare",
    run: b.run,
    search: "",
    size_filter: "",
    sort: "",
    fit_ticked: "",
    ...NEW_RECORDING,
    ...NEW_COMPARISON,
    a: a.id,
    b: b.id,
  });
}

/** Return the program that the candidate's figures are of: a dump may have smaller ones, which compute constants. */
async function programOf(api: Api, candidate: FitCandidate, signal: Signal): Promise<Summary> {
  const { recordings } = await api.recordings({ run: candidate.run }, signal);
  const programs = recordings.filter(({ kind }) => kind === "program");
  const found = programs.find(({ peak_bytes: peak }) => peak === candidate.peak_bytes) ?? programs.at(0);
  if (found === undefined) throw new Error(`The run ${candidate.run} has no program`);
  return found;
}
