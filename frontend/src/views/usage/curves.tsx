import { useMemo } from "preact/hooks";
import { cssColor, roleColors } from "../../base/colors";
import { formatBytes } from "../../base/units";
import {
  availableCurves,
  type CurveKey,
  isNear,
  shownCurves,
  toggleCurve,
} from "../../layout/usage/usage_series";
import { ROLES } from "../../payload/generated/constants";
import type { FirstView } from "../../payload/recording/recording";
import { type Terms, useTerms } from "../data/terms";
import { useDark } from "../state/theme";
import { store, useViewState } from "../state/view_state";

/** Line of a curve in the chart and its legend; dashes distinguish curves without color. */
interface CurveStyle {
  /** Name of a CSS variable, or a CSS color. */
  color: string;
  dash: "solid" | "dashed" | "dotted";
  width: number;
}

/** Dash patterns in pixels, like CSS borders of these names. */
export const DASHES = { solid: [], dashed: [7, 4], dotted: [3, 3] } as const;

const roleColor = (role: (typeof ROLES)[number], dark: boolean): string =>
  cssColor(roleColors(dark)[ROLES.indexOf(role)]);

export function curveStyle(key: CurveKey, dark: boolean): CurveStyle {
  switch (key) {
    case "live":
      return { color: "--accent", dash: "solid", width: 1.5 };
    case "requested":
    case "heap":
      return { color: "--muted", dash: "dotted", width: 1 };
    case "stack":
      return { color: roleColor("executable", dark), dash: "dotted", width: 1.5 };
    case "held":
      return { color: "--ink", dash: "dashed", width: 1 };
    case "free":
      return { color: roleColor("temporary", dark), dash: "solid", width: 1.2 };
    case "largest_free":
      return { color: roleColor("temporary", dark), dash: "dashed", width: 1.2 };
    case "fragmentation":
      return { color: roleColor("gradient", dark), dash: "dotted", width: 1.5 };
    case "ceiling":
      return { color: "--ink", dash: "dashed", width: 1 };
    case "limit":
      return { color: "--warn", dash: "solid", width: 1.5 };
  }
}

/** Return the name and the definition of a curve. */
export function curveLabels(key: CurveKey, terms: Terms, { recording }: FirstView): [string, string] {
  const events = recording.axis === "TIME";
  switch (key) {
    case "live":
      return [terms.live, events ? "Heap plus stack" : "Bytes of live buffers, including padding"];
    case "requested":
      return [`${terms.live}, ${terms.requested}`, `Without ${terms.excess}`];
    case "heap":
      return ["heap alone", "Allocated bytes, without the stack"];
    case "stack":
      return ["stack", "Bytes reserved for running programs"];
    case "held":
      return ["reserved", "Bytes that the allocator has reserved from the device"];
    case "free":
      return ["free", "Bytes that the allocator can still allocate"];
    case "largest_free":
      return ["largest free block", "Larger requests fail, whatever the total of free bytes"];
    case "fragmentation":
      return [
        "fragmentation",
        "Share of the free bytes outside the largest free block; the top of the chart is 100%",
      ];
    case "ceiling":
      return events
        ? ["capacity", "Size of the memory"]
        : ["reserved", "Bytes that the program requests from the device, which must fit in its limit"];
    case "limit":
      return ["limit", `What the program may reserve: ${limitText(recording)}`];
  }
}

/** Return a program's limit with its source. */
function limitText({ capacity_bytes, capacity_source }: FirstView["recording"]): string {
  const bytes = formatBytes(capacity_bytes ?? 0);
  return capacity_source === "" ? bytes : `${bytes}, ${capacity_source}`;
}

/** Return the curves that a recording has. */
export function useCurves({ usage, recording }: FirstView): readonly CurveKey[] {
  const { axis, kind, capacity_bytes, reserved_bytes } = recording;
  return useMemo(() => {
    const curves = availableCurves(
      usage,
      axis !== "TIME" || capacity_bytes !== null,
      kind === "program" && isNear(capacity_bytes, reserved_bytes),
    );
    // Samples of a job have no requested bytes.
    return curves.filter((key) => kind !== "watch" || key !== "requested");
  }, [usage, recording]);
}

/** Legend of the usage chart; a click on a name shows or hides its curve. */
export function CurveLegend({ view, known }: { view: FirstView; known: readonly CurveKey[] }) {
  const dark = useDark();
  const terms = useTerms();
  const curves = useViewState((state) => state.toggled_curves);
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
