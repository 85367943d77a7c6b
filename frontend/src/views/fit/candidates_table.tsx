import { useMemo } from "preact/hooks";
import { formatCount, formatCounted } from "../../base/units";
import { candidateTexts } from "../../layout/fit_table";
import type { FitCandidate } from "../../payload/generated/answers";
import { stepName } from "../../payload/responses/fit";
import { store, useViewState } from "../state/view_state";
import { tickColumn } from "../tables/columns";
import { Table } from "../tables/table";
import { candidateName, type SectionProps } from "./candidate";
import { candidateColumns } from "./candidate_columns";

/** Table of all candidates by target, choice and value; a click or Enter opens one, and two ticks compare. */
export function CandidatesTable({ step, actions }: SectionProps) {
  const ticked = useViewState((state) => state.fit_ticked);
  const shown = useViewState((state) => state.fit_candidate);
  const { isCompiled, tick } = actions;
  const compared = tick !== null && step.candidates.filter(isCompiled).length > 1;
  const onTick = (candidate: FitCandidate): void => {
    if (compared && isCompiled(candidate)) tick(candidate);
  };
  const columns = useMemo(() => {
    const all = candidateColumns(step, ({ run }) => store.set({ fit_candidate: run }));
    if (!compared) return all;
    const ticks = tickColumn<FitCandidate>({
      about: "Tick two candidates to compare them",
      title: "Tick two candidates to compare them",
      testid: "fit-tick",
      label: (each) => `Compare ${candidateName(step, each)}`,
      isTicked: ({ run }) => run === ticked,
      onTick,
      canTick: isCompiled,
    });
    return [ticks, ...all];
  }, [step, actions, ticked]);
  const { length } = step.candidates;
  return (
    <section class="fit-table" data-testid="fit-candidates" aria-label="Candidates">
      <h2>Candidates</h2>
      <Table
        {...{ columns, open: actions.open }}
        rows={step.candidates}
        bytes={(each) => each.reserved_bytes}
        texts={(each) => candidateTexts(each, step.searched)}
        label="Candidates"
        testid="fit-candidate-row"
        noun="candidate"
        fileName={`${stepName(step).replaceAll(/[^\w.-]+/g, "_")}_candidates.csv`}
        summary={(found) =>
          `${formatCount(found)} of ${formatCounted(length, "candidate")}` +
          (ticked === "" ? "" : ". Tick another one to compare")
        }
        isSelected={({ run }) => run === shown}
        keys={{ " ": onTick }}
      />
    </section>
  );
}
