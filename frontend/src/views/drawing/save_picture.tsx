import { createContext, type JSX, type RefObject } from "preact";
import { useContext, useState } from "preact/hooks";
import { messageOf } from "../../base/errors";
import { saveBlob } from "../browser/export";
import { capitalize } from "../data/terms";
import { ButtonGroup } from "../widgets/choice";
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
export function titledPicture(picture: Picture, lines: readonly string[]): Picture {
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
export function pictureFileName(run: string, of: string): string {
  const named = run === "" ? of : `${run}-${of}`;
  return named.replaceAll(/[^\w.()-]+/g, "_").slice(0, 150);
}

interface Props {
  /** Name of the chart, such as "flame graph". */
  of: string;
  /** File name without suffix. */
  fileName: string;
  /** Null while the chart is empty. */
  draw: () => Picture | null;
}

interface DrawingProps extends Omit<Props, "draw"> {
  /** Element that contains the drawing. */
  place: RefObject<HTMLElement | null>;
  draw: (drawing: SVGSVGElement) => Picture;
}

/** Buttons that save the first drawing of an element. */
export function SaveDrawing({ place, draw, ...names }: DrawingProps): JSX.Element {
  const drawFirst = (): Picture | null => {
    const drawing = place.current?.querySelector("svg") ?? null;
    return drawing === null ? null : draw(drawing);
  };
  return <SavePicture {...names} draw={drawFirst} />;
}

const FORMATS = [
  { format: "svg", label: "SVG", about: "as vector graphics" },
  { format: "png", label: "PNG", about: "as an image" },
] as const;

/** Buttons that save a chart with its title and legend as SVG or PNG, on a light background in either theme. */
export function SavePicture({ of, fileName, draw }: Props): JSX.Element {
  const [failed, setFailed] = useState("");
  const names = useContext(PictureNamesContext);
  const save = async (format: "svg" | "png"): Promise<void> => {
    const drawn = draw();
    if (drawn === null) return;
    const { run, lines } = names();
    const drawing = titledPicture(drawn, [capitalize(of), ...lines]);
    const blob =
      format === "png" ? await pngOf(drawing) : new Blob([svgText(drawing)], { type: "image/svg+xml" });
    saveBlob(blob, `${pictureFileName(run, fileName)}.${format}`);
  };
  return (
    <ButtonGroup label={`Save the ${of}`}>
      {FORMATS.map(({ format, label, about }) => (
        <button
          key={format}
          aria-label={`${of}, ${label}`}
          title={failed || `Save the ${of} ${about}`}
          data-testid={`save-${of.replaceAll(" ", "-")}-${format}`}
          onClick={() => {
            save(format).then(
              () => setFailed(""),
              (error: unknown) => setFailed(`Not saved: ${messageOf(error)}`),
            );
          }}
        >
          {label}
        </button>
      ))}
      {failed !== "" && (
        <span class="muted" role="alert">
          {failed}
        </span>
      )}
    </ButtonGroup>
  );
}
