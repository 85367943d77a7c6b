import type { JSX } from "preact";
import type { Store } from "../../base/store";
import { formatCount } from "../../base/units";
import type { Program } from "../../payload/recording/program";
import { formatTime } from "../../layout/axis/ticks";
import type { ViewState } from "../state/view_state";
import { capitalize, useTerms } from "../data/terms";

interface Props {
  position: number;
  peak: number;
  length: number;
  program: Program | null;
  store: Store<ViewState>;
}

/** Inspected position, with buttons for the previous and next one and for the peak. */
export function InspectedPosition({ position, peak, length, program, store }: Props): JSX.Element {
  const go = (to: number): void =>
    store.set({ position: to === peak ? null : Math.min(Math.max(to, 0), length - 1) });
  const terms = useTerms();
  const times = program?.time_ns ?? null;
  const known = program !== null && position < program.length;
  return (
    <div class="inspected">
      <code title={known ? program.op_name.at(position) : ""}>{known ? program.name.at(position) : ""}</code>
      <button
        class="link"
        disabled={position === peak}
        title="Inspect the peak ( p )"
        onClick={() => store.set({ position: null })}
      >
        {position === peak ? "at the peak" : "go to the peak"}
      </button>
      <span class="stepper">
        <button
          aria-label={`${capitalize(terms.position)} before`}
          title={`${capitalize(terms.position)} before ( [ )`}
          onClick={() => go(position - 1)}
        >
          ‹
        </button>
        <span>
          {terms.position} <b data-testid="inspected-position">{formatCount(position)}</b> of{" "}
          {formatCount(length)}
          {times !== null && known && ` at ${formatTime(times[position])}`}
        </span>
        <button
          aria-label={`${capitalize(terms.position)} after`}
          title={`${capitalize(terms.position)} after ( ] )`}
          onClick={() => go(position + 1)}
        >
          ›
        </button>
      </span>
    </div>
  );
}
