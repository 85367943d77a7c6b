import { useMemo } from "preact/hooks";
import { type LargestLine, largestLines } from "../../layout/fit_table";
import type { FitStep } from "../../payload/generated/answers";
import { choiceKey, largestText, recomputedText, stepName } from "../../payload/responses/fit";
import { type Column, column, partColumn, savedColumn } from "../tables/columns";
import { Table } from "../tables/table";
import type { SectionProps } from "./candidate";
import { BOUND, knobColumn, LEFT, namingColumns, RECOMPUTED, RESERVED } from "./candidate_columns";

/** Table of the largest value that fits for each target and choice; a click or Enter opens its candidate. */
export function LargestTable({ step, actions }: SectionProps) {
  const { searched } = step;
  const { rows, columns } = useMemo(
    () => ({ rows: largestLines(step), columns: largestColumns(step) }),
    [step],
  );
  return (
    <section class="fit-table" data-testid="fit-largest" aria-label={`Largest ${searched}`}>
      <Table
        {...{ columns, rows }}
        heading={
          <>
            <h2>Largest {searched} that fits</h2>
            <span class="muted">found by compiling, so larger values that were not tried may fit too</span>
          </>
        }
        where="tree_sort"
        texts={({ named }) => [choiceKey(named)]}
        label={`Largest ${searched}`}
        testid="fit-largest-row"
        noun="choice"
        fileName={`${stepName(step).replaceAll(/[^\w.-]+/g, "_")}_largest.csv`}
        open={({ largest, named }) => actions.open(largest ?? named)}
      />
    </section>
  );
}

export function largestColumns(step: FitStep): Column<LargestLine>[] {
  const { searched } = step;
  const largest = (line: LargestLine) => line.largest;
  const value = knobColumn(searched, (each) => each.value, { numeric: true, track: "minmax(150px, .6fr)" });
  const recomputed = {
    ...RECOMPUTED,
    csv: "recomputed",
    value: recomputedText,
    order: RECOMPUTED.value,
  };
  return [
    ...namingColumns(step).map((each) => partColumn(each, ({ named }: LargestLine) => named)),
    {
      ...partColumn(value, largest),
      heading: `Largest ${searched}`,
      csv: `largest_${searched}`,
      cell: (line) =>
        line.largest === null ? (
          <span class="fit-bad">{largestText(undefined, line.named)}</span>
        ) : (
          <>
            <b>{String(line.largest.value)}</b>
            {line.isEnd && (
              <span class="muted" title={`No larger ${searched} was compiled: one may fit`}>
                {" end of the range"}
              </span>
            )}
          </>
        ),
    },
    partColumn(RESERVED, largest),
    partColumn(LEFT, largest),
    column(
      "text",
      "without",
      "Without recomputation",
      `The largest ${searched} that was tried below all those for which the compiler runs instructions twice`,
      ({ without }) => without && value.value(without),
      { csv: "without_recomputation", numeric: true, track: "minmax(150px, .8fr)" },
    ),
    partColumn(recomputed, largest),
    partColumn(BOUND, largest),
    savedColumn("run", (line) => line.largest?.run ?? null),
  ];
}
