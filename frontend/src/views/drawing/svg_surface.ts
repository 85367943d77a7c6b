import { escapeXml } from "../../render/painter/svg";

/** Drawing surface of charts: a canvas or an SVG. */
export type Surface = Pick<
  CanvasRenderingContext2D,
  "fillStyle" | "strokeStyle" | "lineWidth" | "globalAlpha" | "font" | "fillRect" | "strokeRect" | "fillText"
> & {
  measureText: (text: string) => { width: number };
};

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
    const look = `font-size="${size}"${weight === "bold " ? ' font-weight="bold"' : ""} text-anchor="${this.textAlign}"`;
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
