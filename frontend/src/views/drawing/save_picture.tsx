import { createContext, type RefObject } from "preact";
import { useContext, useEffect, useRef } from "preact/hooks";
import { saveBlob } from "../browser/export";
import { capitalize } from "../data/terms";
import { type LegendEntry, type Picture, pngOf, svgText } from "./picture";
import { SvgSurface } from "./surface";

/** Names for saved pictures: the run, and lines that say what a picture shows. */
export interface PictureNames {
  run: string;
  lines: readonly string[];
}

/** Return the names for the current state, when a picture is saved. */
export const PictureNamesContext = createContext<() => PictureNames>(() => ({ run: "", lines: [] }));

const LINE = 18;
const GAP = 8;
const SWATCH = 10;
const BETWEEN = 16;
const MAX_LINE = 160;
const INK = "#1b1d21";
const MUTED = "#5c636d";

/** Add lines above a picture, the first one bold, and its legend below. */
function titledPicture(picture: Picture, lines: readonly string[]): Picture {
  const surface = new SvgSurface();
  let widest = picture.width;
  lines.forEach((text, i) => {
    surface.font = i === 0 ? "bold 13px sans-serif" : "12px sans-serif";
    surface.fillStyle = i === 0 ? INK : MUTED;
    const shown = shorten(text);
    widest = Math.max(widest, surface.measureText(shown).width);
    surface.fillText(shown, 0, i * LINE + LINE / 2);
  });
  const top = lines.length === 0 ? 0 : lines.length * LINE + GAP;
  const below = top + picture.height;
  const legend = drawLegend(surface, picture.legend ?? [], below + GAP, widest);
  return {
    width: widest,
    height: legend > 0 ? below + GAP + legend : below,
    shapes: [`<g transform="translate(0 ${top})">`, ...picture.shapes, "</g>", ...surface.shapes],
  };
}

/** Return the height of the legend. */
function drawLegend(
  surface: SvgSurface,
  entries: readonly LegendEntry[],
  top: number,
  width: number,
): number {
  surface.font = "11px sans-serif";
  let [left, line] = [0, 0];
  for (const { color, label, line: stroke = false } of entries) {
    const swatch = color === "" ? 0 : SWATCH + 6;
    const wide = swatch + surface.measureText(label).width + BETWEEN;
    if (left > 0 && left + wide > width) [left, line] = [0, line + 1];
    const middle = top + line * LINE + LINE / 2;
    surface.fillStyle = color;
    if (color !== "")
      if (stroke) surface.fillRect(left, middle - 1, SWATCH, 2);
      else surface.fillRect(left, middle - SWATCH / 2, SWATCH, SWATCH);
    surface.fillStyle = INK;
    surface.fillText(label, left + swatch, middle);
    left += wide;
  }
  return entries.length === 0 ? 0 : (line + 1) * LINE;
}

function shorten(text: string): string {
  return text.length > MAX_LINE ? `${text.slice(0, MAX_LINE - 1)}…` : text;
}

/** Return the name of a picture's file without suffix: that of its run first. */
function pictureFileName(run: string, of: string): string {
  const named = run === "" ? of : `${run}-${of}`;
  return named.replaceAll(/[^\w.()-]+/g, "_").slice(0, 150);
}

export type PictureFormat = "svg" | "png";

/** A chart that is on the page, which the Share menu lists. */
export interface SavableChart {
  /** Name of the chart, such as "flame graph". */
  of: string;
  /** Save the chart as a file. Resolves to the file's name, or to null while the chart is empty. */
  save: (format: PictureFormat) => Promise<string | null>;
}

const charts = new Set<SavableChart>();

/** Return the charts on the page, each name once. */
export function savableCharts(): SavableChart[] {
  return [...new Map([...charts].map((chart) => [chart.of, chart])).values()];
}

interface Props {
  /** Name of the chart, such as "flame graph". */
  of: string;
  /** File name without suffix. */
  fileName: string;
  /** Null while the chart is empty. */
  draw: (format: PictureFormat) => Picture | null | Promise<Picture | null>;
}

/** List a chart in the Share menu: it is saved with its title and legend, on a light background in either theme. */
export function SavePicture(props: Props): null {
  const names = useContext(PictureNamesContext);
  const latest = useRef({ ...props, names });
  latest.current = { ...props, names };
  useEffect(() => {
    const chart = { of: props.of, save: (format: PictureFormat) => savePicture(latest.current, format) };
    charts.add(chart);
    return () => void charts.delete(chart);
  }, [props.of]);
  return null;
}

async function savePicture(
  { of, fileName, draw, names }: Props & { names: () => PictureNames },
  format: PictureFormat,
): Promise<string | null> {
  const drawn = await draw(format);
  if (drawn === null) return null;
  const { run, lines } = names();
  const drawing = titledPicture(drawn, [capitalize(of), ...lines]);
  const blob =
    format === "png" ? await pngOf(drawing) : new Blob([svgText(drawing)], { type: "image/svg+xml" });
  const name = `${pictureFileName(run, fileName)}.${format}`;
  saveBlob(blob, name);
  return name;
}

interface DrawingProps extends Omit<Props, "draw"> {
  /** Element that contains the drawing. */
  place: RefObject<HTMLElement | null>;
  draw: (drawing: SVGSVGElement) => Picture;
}

/** List the first drawing of an element in the Share menu. */
export function SaveDrawing({ place, draw, ...names }: DrawingProps) {
  const drawFirst = (): Picture | null => {
    const drawing = place.current?.querySelector("svg") ?? null;
    return drawing === null ? null : draw(drawing);
  };
  return <SavePicture {...names} draw={drawFirst} />;
}
