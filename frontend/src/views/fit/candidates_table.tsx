import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { useStore } from "../../base/store";
import { formatCount } from "../../base/units";
import type { FitKey } from "../../layout/fit/fit_table";
import {
  candidatesCsv,
  candidateTexts,
  candidateValue,
  filterCandidates,
  sortBy,
} from "../../layout/fit/fit_table";
import type { FitCandidate, FitStep } from "../../payload/generated/answers";
import { stepName } from "../../payload/responses/fit";
import { Cell, DataTable, stepLine, TableRow, useTable } from "../tables/data_table";
import { candidateName } from "./candidate_tooltip";
import type { FitColumn } from "./fit_columns";
import { column, knobColumn, namingColumns, outcomeColumns } from "./fit_columns";
import type { SectionProps } from "./section";
import { useSearch } from "../data/use_search";

/** The server's order: by target, choice and value. */
const IN_ORDER = { key: "", descending: false } as const;

/** Table of all candidates; a click or Enter opens one, and two ticks compare. */
export function CandidatesTable({ step, store, actions }: SectionProps): JSX.Element {
  const [selected, setSelected] = useState(-1);
  const ticked = useStore(store, (state) => state.fit_ticked);
  const shown = useStore(store, (state) => state.fit_candidate);
  const columns = useMemo(() => candidateColumns(step), [step]);
  const table = useTable<FitKey | "">(store, columns, IN_ORDER);
  const { size, sort, template } = table;
  const search = useSearch(table.search, step, (of) =>
    of.candidates.flatMap((each) => candidateTexts(each, of.searched)),
  );
  const filtered = useMemo(
    () => filterCandidates(step.candidates, step.searched, search, size),
    [step, search, size],
  );
  const lines = useMemo(
    () =>
      sortBy(filtered.rows, sort.key === "" ? null : { ...sort, key: sort.key }, (row, key) =>
        candidateValue(row, key, step.searched),
      ),
    [filtered, sort, step],
  );
  const compared = actions.tick !== null && step.candidates.filter(actions.isCompiled).length > 1;
  const grid = compared ? `20px ${template}` : template;
  const count = `${formatCount(lines.length)} of ${formatCount(step.candidates.length)} candidates`;
  return (
    <section class="fit-table" data-testid="fit-candidates" aria-label="Candidates">
      <h2>Candidates</h2>
      <DataTable
        store={store}
        table={{
          ...table,
          template: grid,
          columns: compared ? [TICKS, ...table.columns] : table.columns,
        }}
        errors={filtered.errors}
        summary={ticked === "" ? count : `${count}. Tick another one to compare`}
        csv={() => candidatesCsv(step, lines)}
        fileName={`${stepName(step).replaceAll(/[^\w.-]+/g, "_")}_candidates.csv`}
        count={lines.length}
        at={selected}
        empty="No candidate matches the filter."
        label="Candidates"
        onStep={(by) => setSelected(stepLine(selected, by, lines.length))}
        keys={{
          Enter: (i) => actions.open(lines[i]),
          " ": (i) => {
            if (compared && actions.isCompiled(lines[i])) actions.tick?.(lines[i]);
          },
        }}
        line={(i, id) => (
          <TableRow
            {...{ id }}
            template={grid}
            testid="fit-candidate-row"
            selected={i === selected || lines[i].run === shown}
            onPick={() => actions.open(lines[i])}
          >
            {compared && (
              <Cell>
                {actions.isCompiled(lines[i]) && (
                  <Tick
                    {...{ step }}
                    candidate={lines[i]}
                    ticked={lines[i].run === ticked}
                    onTick={() => actions.tick?.(lines[i])}
                  />
                )}
              </Cell>
            )}
            {columns.map((each) => (
              <Cell key={each.key} numeric={each.numeric}>
                {each.key === "error" && lines[i].error !== null ? (
                  <button
                    class="link"
                    title={lines[i].error}
                    onClick={(event) => {
                      event.stopPropagation();
                      store.set({ fit_candidate: lines[i].run });
                    }}
                  >
                    {lines[i].error}
                  </button>
                ) : (
                  each.cell(lines[i])
                )}
              </Cell>
            ))}
          </TableRow>
        )}
      />
    </section>
  );
}

const TICKS: FitColumn = column("tick", "", "Tick two candidates to compare them", "20px", () => "");

function Tick(props: {
  step: FitStep;
  candidate: FitCandidate;
  ticked: boolean;
  onTick: () => void;
}): JSX.Element {
  return (
    <input
      type="checkbox"
      tabindex={-1}
      data-testid="fit-tick"
      aria-label={`Compare ${candidateName(props.step, props.candidate)}`}
      title="Tick two candidates to compare them"
      checked={props.ticked}
      onClick={(event) => event.stopPropagation()}
      onChange={props.onTick}
    />
  );
}

function candidateColumns(step: FitStep): FitColumn[] {
  const searched =
    step.searched === "" ? [] : [{ ...knobColumn(step.searched, ({ value }) => value), numeric: true }];
  return [...namingColumns(step), ...searched, ...outcomeColumns(step)];
}
