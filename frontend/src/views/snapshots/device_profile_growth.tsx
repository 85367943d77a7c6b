import { useMemo, useRef, useState } from "preact/hooks";
import { cssColor } from "../../base/colors";
import { type CsvColumn, formatCsv } from "../../base/csv";
import { onPress } from "../../base/input";
import { formatBytes, formatExact } from "../../base/units";
import { type GrowthBand, growthChart } from "../../layout/bands";
import type { Growth, GrowthSite } from "../../payload/generated/answers";
import { mixPixels } from "../../render/frame/palette";
import { saveText } from "../browser/export";
import { FullWindow, useFullWindow } from "../browser/full_window";
import { useWidth } from "../browser/hooks";
import { ByteAxis } from "../drawing/byte_axis";
import { copySvg, type Picture, withLightTheme } from "../drawing/picture";
import { SaveDrawing } from "../drawing/save_picture";
import { colorReader, SvgSurface } from "../drawing/surface";
import { NEW_RECORDING, store } from "../state/view_state";

const LINE_HEIGHT = 18;
const SWATCH = 10;

/** Strength of a band's color: the band that grows most is on top and stands out. */
function highlightShare(band: number, count: number): number {
  return (count < 2 ? 1 : band / (count - 1)) ** 1.5;
}

/** Return the bytes of a band in the last profile. */
function lastBytes({ top, bottom }: GrowthBand): number {
  return top[top.length - 1] - bottom[bottom.length - 1];
}

/** Draw the chart for a file, with a legend that the page shows as a list. */
function drawGrowth(chart: SVGSVGElement, bands: readonly GrowthBand[], { sites }: Growth): Picture {
  const { width, height, shapes } = copySvg(chart);
  const surface = new SvgSurface();
  const [steady, growing, ink] = withLightTheme(document.body, (holder) =>
    ["--steady", "--growing", "--ink"].map((name) => colorReader(holder)(name, 0)),
  );
  bands.forEach((band, i) => {
    const middle = height + (bands.length - i) * LINE_HEIGHT;
    const site = band.site < 0 ? null : sites[band.site];
    surface.fillStyle = cssColor(mixPixels(steady, growing, highlightShare(i, bands.length)) & 0xffffff);
    surface.fillRect(0, middle - SWATCH / 2, SWATCH, SWATCH);
    surface.fillStyle = cssColor(ink);
    const words = [site?.site ?? "all others", formatBytes(lastBytes(band)), site?.verdict ?? ""];
    surface.fillText(words.filter(Boolean).join(", "), SWATCH + 8, middle);
  });
  return { width, height: height + (bands.length + 1) * LINE_HEIGHT, shapes: [...shapes, ...surface.shapes] };
}

const HEIGHT = 220;
const LEFT = 76;
const RIGHT = 16;
const BOTTOM = 26;
const TOP = 10;

interface SeriesProps {
  growth: Growth;
  id: string;
}

/** Growth over the device profiles of a run, by allocation site. */
export function GrowthSeries({ growth, id }: SeriesProps) {
  const place = useRef<HTMLElement>(null);
  const [pointed, setPointed] = useState<number | null>(null);
  const chart = useMemo(() => growthChart(growth), [growth]);
  const csv = (): string =>
    formatCsv(growth.sites, [
      ["site", ({ site }) => site],
      ["verdict", ({ verdict }) => verdict],
      ...growth.points.map(({ title }, i): CsvColumn<GrowthSite> => [title, ({ curve }) => curve[i]]),
    ]);
  return (
    <section
      ref={place}
      class="growth-series"
      aria-label="Growth over the profiles"
      data-testid="growth-series"
    >
      <header class="section-head">
        <h2>Over the {growth.points.length} profiles of this run</h2>
        <span class="muted">
          {growth.message ?? (growth.headline === null && "No leaks between profiles.")}
        </span>
        <span class="spacer" />
        <SaveDrawing
          of="growth chart"
          fileName="growth"
          place={place}
          draw={(drawing) => drawGrowth(drawing, chart.bands, growth)}
        />
        <button onClick={() => saveText(csv(), "growth.csv")}>Save CSV</button>
      </header>
      <FullWindow of="growth chart">
        <Chart {...{ growth, id, pointed, chart }} onPoint={setPointed} />
      </FullWindow>
      <ol class="growth-sites" onMouseLeave={() => setPointed(null)}>
        {[...chart.bands].reverse().map((band) => {
          const site = band.site < 0 ? null : growth.sites[band.site];
          const last = lastBytes(band);
          return (
            <li
              key={band.site}
              class={band.site === pointed ? "pointed" : ""}
              data-testid="growth-site"
              onMouseEnter={() => setPointed(band.site)}
            >
              <i class="swatch" style={highlightStyle(chart.bands.indexOf(band), chart.bands.length)} />
              <code title={site?.site}>{site?.site ?? "all others"}</code>
              <b class={site?.verdict === "leak" ? "leaking" : "muted"}>{site?.verdict ?? ""}</b>
              <span class="numeric" title={formatExact(last)}>
                {formatBytes(last)}
              </span>
              <span class="muted">{site?.sentence ?? ""}</span>
            </li>
          );
        })}
      </ol>
    </section>
  );
}

interface ChartProps extends SeriesProps {
  chart: ReturnType<typeof growthChart>;
  pointed: number | null;
  onPoint: (site: number | null) => void;
}

function Chart({ growth, id, chart, pointed, onPoint }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const width = useWidth(place);
  const height = useFullWindow() ? window.innerHeight - 60 : HEIGHT;
  const { points } = growth;
  const open = ({ host }: Growth["points"][number]): void => store.set({ host, ...NEW_RECORDING });
  const x = (i: number): number =>
    LEFT + (i * Math.max(width - LEFT - RIGHT, 0)) / Math.max(points.length - 1, 1);
  const y = (bytes: number): number => TOP + (height - TOP - BOTTOM) * (1 - bytes / chart.max);
  const area = ({ bottom, top }: GrowthBand): string =>
    `M${top.map((bytes, i) => `${x(i)},${y(bytes)}`).join(" L")} L${bottom
      .map((bytes, i) => `${x(i)},${y(bytes)}`)
      .reverse()
      .join(" L")} Z`;
  const every = Math.max(1, Math.ceil((points.length * 70) / Math.max(width - LEFT - RIGHT, 1)));
  const name = (i: number): string => {
    const { step, title } = points[i];
    return step === null ? title.replace(/\.[^.]*$/, "") : `step ${step}`;
  };
  return (
    <div ref={place} class="growth-chart" data-testid="growth-chart">
      <svg width={width} height={height} role="group" aria-label="Bytes of each site in each profile">
        <ByteAxis ticks={chart.ticks} left={LEFT} right={width - RIGHT} y={y} />
        {chart.bands.map((band, i) => (
          <path
            key={band.site}
            d={area(band)}
            style={highlightStyle(i, chart.bands.length)}
            class={pointed !== null && pointed !== band.site ? "band aside" : "band"}
            onMouseEnter={() => onPoint(band.site)}
            onMouseLeave={() => onPoint(null)}
          >
            <title>{band.site < 0 ? "all others" : growth.sites[band.site].site}</title>
          </path>
        ))}
        {points.map((point, i) => (
          <g
            key={point.id}
            class={point.id === id ? "point current" : "point"}
            role="button"
            tabindex={0}
            aria-label={`${point.title}, ${formatBytes(point.bytes)}: open it`}
            data-testid="growth-point"
            onClick={() => open(point)}
            onKeyDown={onPress(() => open(point))}
          >
            <title>{`${point.title}: ${formatBytes(point.bytes)}. Click to open it.`}</title>
            <line x1={x(i)} x2={x(i)} y1={TOP} y2={height - BOTTOM} />
            <circle cx={x(i)} cy={y(point.bytes)} r={point.id === id ? 5 : 3.5} />
            {i % every === 0 && (
              <text
                x={x(i)}
                y={height - 8}
                text-anchor={i === 0 ? "start" : i === points.length - 1 ? "end" : "middle"}
              >
                {name(i)}
              </text>
            )}
          </g>
        ))}
      </svg>
    </div>
  );
}

function highlightStyle(band: number, count: number): Record<string, string> {
  return { "--part": `${100 * highlightShare(band, count)}%` };
}
