import type { JSX } from "preact";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import { type CurveKey, shownCurves, toggleCurve } from "../../layout/usage/usage_series";
import type { FirstView } from "../../payload/recording/recording";
import type { ViewState } from "../state/view_state";
import { useTerms } from "../data/terms";
import { curveStyle, curveLabels } from "./curve_style";

interface Props {
  view: FirstView;
  known: readonly CurveKey[];
  store: Store<ViewState>;
  dark: boolean;
}

/** Legend of the usage chart; a click on a name shows or hides its curve. */
export function CurveLegend({ view, known, store, dark }: Props): JSX.Element {
  const terms = useTerms();
  const curves = useStore(store, (state) => state.toggled_curves);
  const shown = new Set(shownCurves(known, curves));
  return (
    <ul class="lines" aria-label="Lines of the chart">
      {known.map((key) => {
        const { color, dash, width } = curveStyle(key, dark);
        const [label, about] = curveLabels(key, terms, view);
        return (
          <li key={key}>
            <button
              aria-pressed={shown.has(key)}
              data-testid={`curve-${key}`}
              title={`${about}. ${shown.has(key) ? "Click to hide" : "Click to show"}`}
              onClick={() => store.set({ toggled_curves: toggleCurve(store.get().toggled_curves, key) })}
            >
              <i
                style={{
                  borderTop: `${width + 0.5}px ${dash} ${color.startsWith("--") ? `var(${color})` : color}`,
                }}
              />
              {label}
            </button>
          </li>
        );
      })}
    </ul>
  );
}
