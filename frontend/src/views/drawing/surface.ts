import { escapeXml } from "../../render/painter/picture";

/** Drawing surface of charts: a canvas or an SVG. */
export type Surface = Pick<
  CanvasRenderingContext2D,
  "fillStyle" | "strokeStyle" | "lineWidth" | "globalAlpha" | "font" | "fillRect" | "strokeRect" | "fillText"
> & {
  measureText: (text: string) => { width: number };
};

/** Font of what canvases show. */
export const CHART_FONT = "11px system-ui, sans-serif";

const round = (value: number): number => Math.round(value * 100) / 100;

/** Records drawing calls as SVG. The text baseline is the middle, as on the charts' canvas. */
export class SvgSurface implements Surface {
  fillStyle: string | CanvasGradient | CanvasPattern = "#000000";
  strokeStyle: string | CanvasGradient | CanvasPattern = "#000000";
  lineWidth = 1;
  globalAlpha = 1;
  font = "11px sans-serif";
  textAlign: "start" | "middle" | "end" = "start";
  readonly shapes: string[] = [];
  private readonly ruler = document.createElement("canvas").getContext("2d");
  private about = "";

  /** Set the tooltip of the next rectangle. */
  title(text: string): void {
    this.about = `<title>${escapeXml(text)}</title>`;
  }

  fillRect(x: number, y: number, width: number, height: number): void {
    this.rect(x, y, width, height, `fill="${this.color(this.fillStyle)}"`);
  }

  strokeRect(x: number, y: number, width: number, height: number): void {
    const stroke = `stroke="${this.color(this.strokeStyle)}" stroke-width="${this.lineWidth}"`;
    this.rect(x, y, width, height, `fill="none" ${stroke}`);
  }

  fillText(text: string, x: number, y: number): void {
    if (text === "") return;
    const [, weight, size] = /^(bold )?([\d.]+)px/.exec(this.font) ?? ["", "", "11"];
    const bold = weight === "bold " ? ' font-weight="bold"' : "";
    const look = `font-size="${size}"${bold} text-anchor="${this.textAlign}"`;
    this.shapes.push(
      `<text x="${round(x)}" y="${round(y)}" dominant-baseline="central" ${look} ` +
        `fill="${this.color(this.fillStyle)}"${this.alpha()}>${escapeXml(text)}</text>`,
    );
  }

  measureText(text: string): { width: number } {
    if (this.ruler === null) return { width: 6 * text.length };
    this.ruler.font = this.font;
    return this.ruler.measureText(text);
  }

  private rect(x: number, y: number, width: number, height: number, look: string): void {
    const place = `x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}"`;
    this.shapes.push(`<rect ${place} ${look}${this.alpha()}>${this.about}</rect>`);
    this.about = "";
  }

  private alpha(): string {
    return this.globalAlpha === 1 ? "" : ` opacity="${this.globalAlpha}"`;
  }

  /** Canvas patterns do not exist in SVG: callers pass a color or `HATCH`. */
  private color(style: string | CanvasGradient | CanvasPattern): string {
    return typeof style === "string" ? escapeXml(style) : "none";
  }
}

/** Fill of hatched areas in an SVG. */
export const HATCH = "url(#hatch)";

export function hatchDefinition(color: string): string {
  return (
    `<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">` +
    `<rect width="2" height="6" fill="${escapeXml(color)}"/></pattern></defs>`
  );
}

/** Return the text, shortened with an ellipsis in its middle to fit; empty if too little would remain. */
export function fitText(context: Pick<Surface, "measureText">, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  // Letters are at least 2 px wide in the small fonts of charts.
  let most = Math.min(text.length, Math.max(Math.floor(width / 2), 0));
  let least = 0;
  while (least < most) {
    const letters = Math.ceil((least + most) / 2);
    if (context.measureText(shorten(text, letters)).width <= width) least = letters;
    else most = letters - 1;
  }
  return least > 3 ? shorten(text, least) : "";
}

/** Shorten a name in the middle: neighbors differ at the end ("fusion.3" and "fusion.4", "a.py:3" and "a.py:4"). */
export function shorten(text: string, letters: number): string {
  if (text.length <= letters) return text;
  if (letters < 3) return text.slice(0, Math.max(letters, 0));
  const head = Math.ceil((letters - 1) / 2);
  return `${text.slice(0, head)}…${text.slice(text.length - (letters - 1 - head))}`;
}

/** Size a canvas in CSS pixels, and return its context, which is cleared and scaled; null where there is none. */
export function sizedContext(
  canvas: HTMLCanvasElement,
  width: number,
  height: number,
): CanvasRenderingContext2D | null {
  const context = canvas.getContext("2d");
  if (context === null) return null;
  canvas.width = Math.round(width * devicePixelRatio);
  canvas.height = Math.round(height * devicePixelRatio);
  context.scale(devicePixelRatio, devicePixelRatio);
  context.textBaseline = "middle";
  return context;
}

export interface PageColors {
  ink: string;
  muted: string;
  grid: string;
  accent: string;
  warn: string;
  bad: string;
  good: string;
  surface: string;
}

/** Colors of the page, or of an element with another theme, which canvases do not inherit. */
export function pageColors(page = document.documentElement): PageColors {
  const style = getComputedStyle(page);
  const read = (name: string): string => style.getPropertyValue(name).trim();
  return {
    ink: read("--ink"),
    muted: read("--muted"),
    grid: read("--line"),
    accent: read("--accent"),
    warn: read("--warn"),
    bad: read("--bad"),
    good: read("--good"),
    surface: read("--surface"),
  };
}

/** Return a function that reads a color of the page, or of an element with another theme, as 0xRRGGBB. */
export function colorReader(page: Element): (name: string, otherwise: number) => number {
  const style = getComputedStyle(page);
  return (name, otherwise) => {
    const value = style.getPropertyValue(name).trim();
    return /^#[0-9a-f]{6}$/i.test(value) ? Number.parseInt(value.slice(1), 16) : otherwise;
  };
}

/**
 * Space left and right of a plot, in CSS pixels. The usage chart, its span lanes and the timeline share it, so that a
 * position has the same x in all of them.
 */
export const GUTTER_LEFT = 74;
export const GUTTER_RIGHT = 16;

/** Draw the title of a y axis in the gutter, upwards, with its middle at `y`. */
export function drawSideTitle(context: CanvasRenderingContext2D, text: string, y: number): void {
  context.save();
  context.translate(2, y);
  context.rotate(-Math.PI / 2);
  context.textAlign = "center";
  context.textBaseline = "top";
  context.fillText(text, 0, 0);
  context.restore();
}

/** Left and right, or top and bottom. */
type Edges = readonly number[];

/** Draw a veil over what lies outside of a selected part of the x axis, with lines at its ends. */
export function veil(
  ctx: CanvasRenderingContext2D,
  [left, right]: Edges,
  [from, to]: Edges,
  [top, bottom]: Edges,
  { surface, ink }: Pick<PageColors, "surface" | "ink">,
): void {
  const [start, end] = [from, to].map((x) => Math.min(Math.max(x, left), right));
  ctx.fillStyle = surface;
  ctx.globalAlpha = 0.65;
  ctx.fillRect(left, top, start - left, bottom - top);
  ctx.fillRect(end, top, right - end, bottom - top);
  ctx.globalAlpha = 1;
  ctx.fillStyle = ink;
  for (const x of [start, end - 1]) ctx.fillRect(x, top, 1, bottom - top);
}
