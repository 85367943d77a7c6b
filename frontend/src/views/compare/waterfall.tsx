import { useMemo } from "preact/hooks";
import { formatBytes, formatCount, formatExact, formatSigned } from "../../base/units";
import { stepName, type Waterfall, waterfall, type WaterfallBar } from "../../layout/compare/changes";
import { shortNames } from "../../layout/short_names";
import type { Comparison } from "../../payload/generated/answers";
import { inFullWindow } from "../browser/full_window";
import { type Picture, withLightTheme } from "../drawing/picture";
import { SavePicture } from "../drawing/save_picture";
import { fitText, pageColors, SvgSurface } from "../drawing/surface";
import { store, useViewState } from "../state/view_state";
import { Choice } from "../widgets/choice";
import { Middle } from "../widgets/labels";

const LINE = 22;
const BAR = 16;
/** Maximum width of labels, which can be long paths. */
const WIDEST_LABEL = 320;
const TRACK = 560;
const FIGURES = 90;
const GAP = 10;
const PLAIN = "12px sans-serif";
const BOLD = "bold 12px sans-serif";

/** Draw the waterfall for a file: a line per bar, with label and figure. */
function drawWaterfall({ bars, origin }: Waterfall): Picture {
  const surface = new SvgSurface();
  const { ink, muted, bad, good } = withLightTheme(document.body, pageColors);
  const colors = { total: muted, grown: bad, shrunk: good };
  surface.font = BOLD;
  const short = shortNames(bars.map(({ label }) => label));
  const names = bars.map(({ label }) => short(label));
  const labels = Math.min(Math.max(...names.map((name) => surface.measureText(name).width)), WIDEST_LABEL);
  const left = labels + GAP;
  bars.forEach((bar, i) => {
    const middle = i * LINE + LINE / 2;
    surface.font = bar.kind === "total" ? BOLD : PLAIN;
    surface.fillStyle = ink;
    surface.textAlign = "end";
    surface.fillText(fitText(surface, names[i], labels), labels, middle);
    surface.fillText(figure(bar), left + TRACK + GAP + FIGURES, middle);
    const [from, to] = [Math.min(bar.from, bar.to), Math.max(bar.from, bar.to)];
    surface.fillStyle = colors[bar.kind];
    surface.title(`${bar.label}: ${figure(bar)}`);
    surface.fillRect(left + from * TRACK, middle - BAR / 2, Math.max((to - from) * TRACK, 2), BAR);
  });
  const height = bars.length * LINE;
  if (origin > 0) {
    surface.font = "11px sans-serif";
    surface.fillStyle = colors.total;
    surface.textAlign = "start";
    surface.fillText(`The axis starts at ${formatBytes(origin)}.`, left, height + LINE / 2);
  }
  return {
    width: left + TRACK + GAP + FIGURES,
    height: height + (origin > 0 ? LINE : 0),
    shapes: surface.shapes,
    legend: [
      { color: colors.total, label: "total" },
      { color: colors.grown, label: "grows" },
      { color: colors.shrunk, label: "shrinks" },
    ],
  };
}

function figure(bar: WaterfallBar): string {
  return bar.kind === "total" ? formatBytes(bar.bytes_b) : formatSigned(bar.bytes_b - bar.bytes_a);
}

const STEPS = [
  { value: "role", label: "Role", about: "Parameters, activations, temporaries and so on" },
  { value: "model", label: "Layer", about: "Arguments, passes and layers of the model" },
  { value: "source", label: "Source line", about: "Innermost line of your own code" },
] as const;

/** Waterfall from the bytes of A to those of B, with a step for each role, layer or line that changed. */
export const WaterfallSection = inFullWindow("waterfall", Steps);

function Steps({ comparison }: { comparison: Comparison }) {
  const chosen = useViewState((state) => state.compare_by);
  const { a, b, steps } = comparison;
  const chart = useMemo(() => waterfall(a.bytes, b.bytes, steps), [comparison]);
  const short = useMemo(() => shortNames(chart.bars.map(({ label }) => label)), [chart]);
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
          <Bar key={`${i} ${bar.label}`} bar={bar} text={short(bar.label)} />
        ))}
      </ol>
    </section>
  );
}

interface BarProps {
  bar: WaterfallBar;
  /** The label, cut to what tells it apart. */
  text: string;
}

function Bar({ bar, text }: BarProps) {
  const name = stepName(bar);
  const open = useViewState((state) => state.selected_change === name);
  const [left, right] = [Math.min(bar.from, bar.to), Math.max(bar.from, bar.to)];
  const total = bar.kind === "total";
  const parts = (
    <>
      <span class="label" title={bar.label}>
        <Middle text={text} />
      </span>
      <span class="track">
        <i style={{ left: `${100 * left}%`, width: `${100 * (right - left)}%` }} />
      </span>
      <span class="numeric">{figure(bar)}</span>
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
