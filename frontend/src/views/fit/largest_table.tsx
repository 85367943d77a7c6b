import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { useStore } from "../../base/store";
import type { FitKey, LargestLine } from "../../layout/fit/fit_table";
import { largestCsv, largestLines, largestValue, sortBy } from "../../layout/fit/fit_table";
import type { FitStep } from "../../payload/generated/answers";
import { choiceKey, largestText, stepName } from "../../payload/responses/fit";
import { saveText } from "../browser/save_file";
import { Cell, stepLine, TableRow } from "../tables/data_table";
import { TableHead } from "../tables/table_head";
import { useSorting } from "../tables/use_sorting";
import { VirtualLines } from "../tables/virtual_lines";
import type { FitColumn } from "./fit_columns";
import {
  boundColumn,
  column,
  knobColumn,
  leftColumn,
  namingColumns,
  recomputedColumn,
  reservedColumn,
} from "./fit_columns";
import type { SectionProps } from "./section";
import { useSearch } from "../data/use_search";

const IN_ORDER = { key: "", descending: false } as const;
const OF_CHOICE = new Set<FitKey>(["target", "changes"]);

/** Table of the largest value that fits for each target and choice; a click or Enter opens its candidate. */
export function LargestTable({ step, store, actions }: SectionProps): JSX.Element {
  const [selected, setSelected] = useState(-1);
  const typed = useStore(store, (state) => state.search);
  const search = useSearch(typed, step, (of) => largestLines(of).map(({ named }) => choiceKey(named)));
  const columns = useMemo(() => largestColumns(step), [step]);
  const [sort, onSort] = useSorting<FitKey | "">(store, columns, IN_ORDER, "tree_sort");
  const lines = useMemo(() => {
    const matching = largestLines(step).filter(
      ({ named }) => search.empty || search.matches(choiceKey(named)),
    );
    return sortBy(matching, sort.key === "" ? null : { ...sort, key: sort.key }, (row, key) =>
      largestValue(row, key, step.searched),
    );
  }, [step, search, sort]);
  const template = columns.map(({ track }) => track).join(" ");
  const open = (line: LargestLine): void => actions.open(line.largest ?? line.named);
  return (
    <section class="fit-table" data-testid="fit-largest" aria-label={`Largest ${step.searched}`}>
      <header class="section-head">
        <h2>Largest {step.searched} that fits</h2>
        <span class="muted">found by compiling, so larger values that were not tried may fit too</span>
        <span class="spacer" />
        <button
          onClick={() =>
            saveText(largestCsv(step, lines), `${stepName(step).replaceAll(/[^\w.-]+/g, "_")}_largest.csv`)
          }
        >
          Save CSV
        </button>
      </header>
      <VirtualLines
        count={lines.length}
        at={selected}
        empty="No choice matches the filter."
        label={`Largest ${step.searched}`}
        onStep={(by) => setSelected(stepLine(selected, by, lines.length))}
        keys={{ Enter: (i) => open(lines[i]) }}
        head={<TableHead {...{ columns, template, sort, onSort }} />}
        line={(i, id) => (
          <TableRow
            {...{ id, template }}
            testid="fit-largest-row"
            selected={i === selected}
            onPick={() => open(lines[i])}
          >
            {columns.map((each) => (
              <Cell key={each.key} numeric={each.numeric}>
                {cellOf(each, lines[i], step)}
              </Cell>
            ))}
          </TableRow>
        )}
      />
    </section>
  );
}

function cellOf(
  each: FitColumn,
  { largest, without, named }: LargestLine,
  step: FitStep,
): JSX.Element | string {
  const { key } = each;
  if (OF_CHOICE.has(key) || (key.startsWith("knob:") && key !== `knob:${step.searched}`))
    return each.cell(named);
  if (key === "without") return without === null ? <span class="muted">–</span> : String(without.value);
  if (largest !== null)
    return key === `knob:${step.searched}` ? <b>{String(largest.value)}</b> : each.cell(largest);
  return key === `knob:${step.searched}` ? (
    <span class="fit-bad">{largestText(undefined, named)}</span>
  ) : (
    <span class="muted">–</span>
  );
}

function largestColumns(step: FitStep): FitColumn[] {
  const { searched } = step;
  return [
    ...namingColumns(step),
    {
      ...knobColumn(searched, ({ value }) => value, `Largest ${searched}`),
      numeric: true,
      track: "minmax(96px, .6fr)",
    },
    reservedColumn(),
    leftColumn(),
    column(
      "without",
      "Without recomputation",
      `The largest ${searched} that was tried below all those for which the compiler runs instructions twice`,
      "minmax(150px, .8fr)",
      () => "",
      true,
    ),
    recomputedColumn(),
    boundColumn(),
  ];
}
