import type { JSX } from "preact";
import type { Store } from "../../base/store";
import { formatBytes, formatCount } from "../../base/units";
import type { Program } from "../../payload/recording";
import type { ViewState } from "../state";

interface Props {
  position: number;
  peak: number;
  length: number;
  bytes: number | null;
  count: number | null;
  program: Program | null;
  store: Store<ViewState>;
}

/** The position everything below it is about, and the way back to the peak. */
export function Inspected({ position, peak, length, bytes, count, program, store }: Props): JSX.Element {
  const go = (to: number): void =>
    store.set({ position: to === peak ? null : Math.min(Math.max(to, 0), length - 1) });
  const instruction = program !== null && position < program.length ? program.name.at(position) : "";
  const scope = program !== null && position < program.length ? program.op_name.at(position) : "";
  return (
    <div class="inspected">
      <h2>
        {bytes === null ? "…" : formatBytes(bytes)} live
        {count !== null && ` in ${formatCount(count)} buffers`}
        {position === peak ? " at the peak" : ""}
      </h2>
      <span class="stepper">
        <button aria-label="Position before" title="Position before ( [ )" onClick={() => go(position - 1)}>
          ‹
        </button>
        <span>
          position <b data-testid="inspected-position">{position}</b> of {formatCount(length)}
        </span>
        <button aria-label="Position after" title="Position after ( ] )" onClick={() => go(position + 1)}>
          ›
        </button>
      </span>
      <code class="instruction" title={scope}>
        {instruction}
      </code>
      {position !== peak && (
        <button title="Back to the peak ( p )" onClick={() => store.set({ position: null })}>
          Peak
        </button>
      )}
    </div>
  );
}
