import type { FitCandidate, FitStep } from "../../payload/generated/answers";
import type { ViewProps } from "../state/view_state";

/** What charts and tables do with a candidate. */
export interface CandidateActions {
  open: (candidate: FitCandidate) => void;
  /** Null where nothing can be compared, as in a report. */
  tick: ((candidate: FitCandidate) => void) | null;
  /** Its program is in the logdir. */
  isCompiled: (candidate: FitCandidate) => boolean;
}

/** What charts and tables of a step share. */
export interface SectionProps extends ViewProps {
  step: FitStep;
  actions: CandidateActions;
}
