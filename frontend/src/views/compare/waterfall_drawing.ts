import { formatBytes } from "../../base/units";
import { formatSigned } from "../../layout/compare/change_table";
import type { WaterfallBar, Waterfall } from "../../layout/compare/waterfall";
import { fitText } from "../drawing/fit_text";
import type { Picture } from "../drawing/picture";
import { withLightTheme } from "../drawing/picture";
import { SvgSurface } from "../drawing/svg_surface";

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
export function drawWaterfall({ bars, origin }: Waterfall): Picture {
  const surface = new SvgSurface();
  const colors = withLightTheme(document.body, (holder) => {
    const style = getComputedStyle(holder);
    const read = (name: string): string => style.getPropertyValue(name).trim();
    return { ink: read("--ink"), total: read("--muted"), grown: read("--bad"), shrunk: read("--good") };
  });
  surface.font = BOLD;
  const labels = Math.min(
    Math.max(...bars.map(({ label }) => surface.measureText(label).width)),
    WIDEST_LABEL,
  );
  const left = labels + GAP;
  bars.forEach((bar, i) => {
    const middle = i * LINE + LINE / 2;
    surface.font = bar.kind === "total" ? BOLD : PLAIN;
    surface.fillStyle = colors.ink;
    surface.textAlign = "end";
    surface.fillText(fitText(surface, bar.label, labels), labels, middle);
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
