import type { Program } from "./program";
import type { Rows } from "./rows";
import { STEP_SPAN } from "../generated/constants";
import { type Spans } from "./spans";
import { blankColumn, dictionaryOf, NO_TEXT, TextColumn } from "../tables/text_column";

const BEFORE = "before the first step";
const BETWEEN = "between steps";

/**
 * Return the step in which each row was allocated; dictionary entries are in the order of the steps. The text
 * is empty for rows allocated before the recording, and for all rows if the profile has no steps. Where steps
 * overlap, the step that started last counts.
 */
export function allocationSteps(rows: Rows, { time_ns }: Program, spans: Spans | null): TextColumn {
  const steps = spans === null ? [] : [...spans.kind.keys()].filter((span) => spans.kind[span] === STEP_SPAN);
  if (spans === null || time_ns === null || steps.length === 0) return blankColumn(rows.length);
  const { start_ns, end_ns, name } = spans;
  steps.sort((a, b) => start_ns[a] - start_ns[b]);
  const starts = Float64Array.from(steps, (span) => start_ns[span]);
  const codes = new Uint32Array(rows.length).fill(NO_TEXT);
  // Codes after the last step mean "outside any step".
  const [before, between] = [steps.length, steps.length + 1];
  for (let row = 0; row < rows.length; row++) {
    if (rows.start[row] < 0) continue;
    const born = time_ns[rows.start[row]];
    let step = lastAtOrBefore(starts, born);
    if (step < 0) codes[row] = before;
    else {
      while (step >= 0 && end_ns[steps[step]] < born) step--;
      codes[row] = step < 0 ? between : step;
    }
  }
  return new TextColumn(
    codes,
    dictionaryOf([...distinctNames(steps.map((span) => name.at(span))), BEFORE, BETWEEN]),
  );
}

/** Number the steps if their names alone do not distinguish them. */
function distinctNames(names: string[]): string[] {
  const apart = new Set(names).size === names.length;
  return names.map((name, step) => (apart && name !== "" ? name : `${name || "step"} #${step}`));
}

/** Return the index of the last ascending value that is at most `value`, or -1 if there is none. */
function lastAtOrBefore(values: Float64Array, value: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
