import { useMemo } from "preact/hooks";
import { hasCurve, numberOf } from "../../layout/fit/chart";
import { hasRates } from "../../layout/fit/front";
import type { Api } from "../../payload/api";
import type { Fit, FitCandidate, FitStep, Runs } from "../../payload/generated/answers";
import { choiceKey, stepKey, stepName, versionTexts } from "../../payload/responses/fit";
import { useAttempt } from "../data/use_fetched";
import { type PageProps, usePageState } from "../data/use_recording";
import { PageFrame } from "../page/details";
import { Headline } from "../page/headline";
import { store, useViewState } from "../state/view_state";
import { ErrorMessage, Message } from "../widgets/message";
import { BarsSection } from "./bars";
import { type CandidateActions, CandidateDetails, compareCandidates, openCandidate } from "./candidate";
import { CurveSection } from "./curve";
import { FrontSection } from "./front";
import { CandidatesTable, LargestTable } from "./tables";

interface Props extends PageProps {
  /** Null while it loads. */
  fit: Fit | null;
  runs: Runs | null;
}

/** Candidates of a fit: the memory that each needs, and the largest value of the searched knob that fits. */
export function FitPage({ api, fit, runs, onState }: Props) {
  const wanted = useViewState((state) => state.fit_step);
  usePageState(onState, null, fit !== null);
  if (fit === null) return <div class="placeholder" aria-busy="true" />;
  const step = fit.steps.find((each) => stepKey(each) === wanted) ?? mostCandidates(fit.steps);
  if (step === undefined) return <NoFit fit={fit} />;
  return <StepPage key={stepKey(step)} {...{ api, fit, step, runs }} />;
}

/** Return the step that is shown at first: not one of a single candidate that failed. */
function mostCandidates(steps: readonly FitStep[]): FitStep | undefined {
  return steps
    .slice()
    .sort((a, b) => b.candidates.length - a.candidates.length)
    .at(0);
}

function NoFit({ fit }: { fit: Fit }) {
  return (
    <>
      <Message title="This logdir has no fit">
        Compile a step for accelerators that are not here, and keep the candidates in this logdir:{" "}
        <code>tb-memplugin fit FILE.py:step --on v5e:4x4 --vary batch --to LOGDIR</code>
      </Message>
      {fit.problems.map(({ file, text }) => (
        <Message key={file} error title={file}>
          {text}
        </Message>
      ))}
    </>
  );
}

interface StepProps extends Omit<Props, "fit" | "onState"> {
  fit: Fit;
  step: FitStep;
}

/** Return the unchanged candidates that answer; of a choice of which none fits, all. Details show other caveats. */
function answers({ candidates, choices }: FitStep): FitCandidate[] {
  return candidates.filter(({ change, choice }, number) => {
    const answer = choices[choice]?.candidate ?? null;
    return change === "" && (answer === null || answer === number);
  });
}

function StepPage({ api, fit, step, runs }: StepProps) {
  const [error, attempt] = useAttempt();
  const actions = useActions(api, step, runs, attempt);
  const choice = useChoice(step);
  const selected = useViewState((state) => state.fit_candidate);
  const candidate = step.candidates.find(({ run }) => run === selected);
  const shared = { step, actions };
  const drawer =
    candidate === undefined ? null : (
      <CandidateDetails {...shared} candidate={candidate} key={candidate.run} />
    );
  const caveats = [...new Set(answers(step).flatMap((each) => each.caveats))];
  return (
    <PageFrame drawer={drawer}>
      {fit.steps.length > 1 && <StepPicker steps={fit.steps} step={step} />}
      <Headline
        headline={step.headline}
        caveats={caveats.map((text) => ({ code: "fit", text, bytes: null }))}
        problems={fit.problems}
      >
        <p class="muted fit-versions" data-testid="fit-versions">
          {[step.step, ...versionTexts(step)].join(" \u00b7 ")}
        </p>
      </Headline>
      {error !== null && <ErrorMessage error={error} />}
      {hasCurve(step) ? <CurveSection {...shared} choice={choice} /> : <BarsSection {...shared} />}
      {hasRates(step) && <FrontSection {...shared} />}
      {step.searched !== "" && <LargestTable {...shared} />}
      <CandidatesTable {...shared} />
    </PageFrame>
  );
}

function StepPicker({ steps, step }: { steps: FitStep[]; step: FitStep }) {
  return (
    <label class="fit-step">
      <span class="muted">Step</span>
      <select
        data-testid="fit-step"
        value={stepKey(step)}
        onChange={(event) =>
          store.set({
            fit_step: event.currentTarget.value,
            fit_choice: "",
            fit_candidate: "",
            fit_ticked: "",
          })
        }
      >
        {steps.map((each) => (
          <option key={stepKey(each)} value={stepKey(each)} title={each.step}>
            {stepName(each)}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Return the choice whose peak is shown by role: the one in the URL, else that of the largest value. */
function useChoice(step: FitStep): number {
  const wanted = useViewState((state) => state.fit_choice);
  return useMemo(() => {
    const named = step.choices.findIndex((choice) => choiceKey(choice) === wanted);
    if (named >= 0) return named;
    const best = step.choices.map(({ candidate }) =>
      candidate === null ? null : step.candidates[candidate],
    );
    const order = best.flatMap((each, i) => (each === null ? [] : [[i, each] as const]));
    // The program without changes first; of equal values, the one with the most memory left, as in the headline.
    order.sort(
      ([, a], [, b]) =>
        Math.sign(a.changes.length) - Math.sign(b.changes.length) ||
        (numberOf(b.value) ?? 0) - (numberOf(a.value) ?? 0) ||
        (a.reserved_bytes ?? 0) - (b.reserved_bytes ?? 0),
    );
    return order.at(0)?.[0] ?? 0;
  }, [step, wanted]);
}

function useActions(
  api: Api,
  step: FitStep,
  runs: Runs | null,
  attempt: (started: Promise<void>) => void,
): CandidateActions {
  return useMemo(() => {
    const compiled = new Set(runs?.runs.map(({ name }) => name));
    const isCompiled = ({ run, reserved_bytes: reserved }: FitCandidate): boolean =>
      reserved !== null && compiled.has(run);
    const tick = (candidate: FitCandidate): void => {
      const { fit_ticked: ticked } = store.get();
      const first = step.candidates.find(({ run }) => run === ticked);
      if (first === undefined) store.set({ fit_ticked: candidate.run });
      else if (first === candidate) store.set({ fit_ticked: "" });
      else attempt(compareCandidates(api, first, candidate));
    };
    return {
      isCompiled,
      tick: api.report === null ? tick : null,
      open: (candidate) => {
        if (isCompiled(candidate)) attempt(openCandidate(api, candidate));
        else store.set({ fit_candidate: candidate.run });
      },
    };
  }, [api, step, runs]);
}
