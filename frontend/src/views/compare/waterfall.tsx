import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import { formatBytes, formatCount, formatExact } from "../../base/units";
import { formatSigned } from "../../layout/compare/change_table";
import { stepName } from "../../layout/compare/selected_change";
import type { WaterfallBar } from "../../layout/compare/waterfall";
import { waterfall } from "../../layout/compare/waterfall";
import type { Comparison } from "../../payload/generated/answers";
import { Choice } from "../widgets/choice";
import { SavePicture } from "../drawing/save_picture";
import type { ViewState } from "../state/view_state";
import { drawWaterfall } from "./waterfall_drawing";

const STEPS = [
  { value: "role", label: "Category", about: "Parameters, activations, temporaries and so on" },
  { value: "model", label: "Layer", about: "Arguments, passes and layers of the model" },
  { value: "source", label: "Source line", about: "Innermost line of your own code" },
] as const;

/** Waterfall from the bytes of A to those of B, with a step for each role, layer or line that changed. */
export function WaterfallSection(props: { comparison: Comparison; store: Store<ViewState> }): JSX.Element {
  const { comparison, store } = props;
  const chosen = useStore(store, (state) => state.compare_by);
  const { a, b, steps } = comparison;
  const chart = useMemo(() => waterfall(a.bytes, b.bytes, steps), [comparison]);
  return (
    <section aria-label="From A to B">
      <header class="section-head">
        <h2>From A to B</h2>
        <span class="muted">
          {chart.unchanged > 0 && `${formatCount(chart.unchanged)} unchanged`}
          {chart.unchanged > 0 && chart.origin > 0 && ", "}
          {chart.origin > 0 && `the axis starts at ${formatBytes(chart.origin)}`}
        </span>
        <span class="spacer" />
        <Choice
          label="Steps by"
          testid="steps"
          options={STEPS}
          value={chosen}
          onPick={(picked) => store.set({ compare_by: picked })}
        />
        <SavePicture of="waterfall" fileName={`waterfall-by-${chosen}`} draw={() => drawWaterfall(chart)} />
      </header>
      <ol class={chart.origin > 0 ? "waterfall cut" : "waterfall"} data-testid="waterfall">
        {chart.bars.map((bar, i) => (
          <Bar key={`${i} ${bar.label}`} bar={bar} store={store} />
        ))}
      </ol>
    </section>
  );
}

function Bar({ bar, store }: { bar: WaterfallBar; store: Store<ViewState> }): JSX.Element {
  const name = stepName(bar);
  const open = useStore(store, (state) => state.selected_change === name);
  const [left, right] = [Math.min(bar.from, bar.to), Math.max(bar.from, bar.to)];
  const total = bar.kind === "total";
  const parts = (
    <>
      <span class="label">{bar.label}</span>
      <span class="track">
        <i style={{ left: `${100 * left}%`, width: `${100 * (right - left)}%` }} />
      </span>
      <span class="numeric">
        {total ? formatBytes(bar.bytes_b) : formatSigned(bar.bytes_b - bar.bytes_a)}
      </span>
    </>
  );
  return (
    <li class={bar.kind} data-testid="waterfall-step">
      {total ? (
        <div title={formatExact(bar.bytes_b)}>{parts}</div>
      ) : (
        <button
          aria-pressed={open}
          title={`${formatExact(bar.bytes_a)} in A, ${formatExact(bar.bytes_b)} in B`}
          onClick={() => store.set({ selected_change: open ? "" : name })}
        >
          {parts}
        </button>
      )}
    </li>
  );
}
