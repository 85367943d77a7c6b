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

/** Styles of the curves; a color is that of a CSS variable or of a role. */
const STYLES: Record<CurveKey, CurveStyle> = {
  live: { color: "--accent", dash: "solid", width: 1.5 },
  requested: { color: "--muted", dash: "dotted", width: 1 },
  heap: { color: "--muted", dash: "dotted", width: 1 },
  stack: { color: "executable", dash: "dotted", width: 1.5 },
  held: { color: "--ink", dash: "dashed", width: 1 },
  free: { color: "temporary", dash: "solid", width: 1.2 },
  largest_free: { color: "temporary", dash: "dashed", width: 1.2 },
  fragmentation: { color: "gradient", dash: "dotted", width: 1.5 },
  ceiling: { color: "--ink", dash: "dashed", width: 1 },
  limit: { color: "--warn", dash: "solid", width: 1.5 },
};

export function curveStyle(key: CurveKey, dark: boolean): CurveStyle {
  const style = STYLES[key];
  const role = ROLES.findIndex((name) => name === style.color);
  return role < 0 ? style : { ...style, color: cssColor(roleColors(dark)[role]) };
}

/** Return the name and the definition of a curve. */
export function curveLabels(key: CurveKey, terms: Terms, { recording }: FirstView): [string, string] {
  const events = recording.axis === "TIME";
  const labels: Record<CurveKey, [string, string]> = {
    live: [terms.live, events ? "Heap plus stack" : "Bytes of live buffers, including padding"],
    requested: [`${terms.live}, ${terms.requested}`, `Without ${terms.excess}`],
    heap: ["heap alone", "Allocated bytes, without the stack"],
    stack: ["stack", "Bytes reserved for running programs"],
    held: ["reserved", "Bytes that the allocator has reserved from the device"],
    free: ["free", "Bytes that the allocator can still allocate"],
    largest_free: ["largest free block", "Larger requests fail, whatever the total of free bytes"],
    fragmentation: [
      "fragmentation",
      "Share of the free bytes outside the largest free block; the top of the chart is 100%",
    ],
    ceiling: events
      ? ["capacity", "Size of the memory"]
      : ["reserved", "Bytes that the program requests from the device, which must fit in its limit"],
    limit: ["limit", `What the program may reserve: ${limitText(recording)}`],
  };
  return labels[key];
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
