import { escapeXml } from "../../render/painter/svg";

/** A color of a picture and its meaning; without a color, a remark. */
export interface LegendEntry {
  color: string;
  label: string;
  /** The color of a line; otherwise of areas. */
  line?: boolean;
}

/** Picture of a chart, in colors for a light background. */
export interface Picture {
  /** CSS pixels. */
  width: number;
  height: number;
  /** SVG elements with escaped text. */
  shapes: readonly string[];
  legend?: readonly LegendEntry[];
}

const MARGIN = 8;
const GROUND = "#ffffff";

/** Return the picture as the text of an SVG file. */
export function svgText({ width, height, shapes }: Picture): string {
  const [wide, high] = [Math.ceil(width) + 2 * MARGIN, Math.ceil(height) + 2 * MARGIN];
  const font = escapeXml('system-ui, -apple-system, "Segoe UI", Roboto, sans-serif');
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${wide}" height="${high}" viewBox="0 0 ${wide} ${high}" font-family="${font}">`,
    `<rect width="100%" height="100%" fill="${GROUND}"/>`,
    `<g transform="translate(${MARGIN} ${MARGIN})">`,
    ...shapes,
    "</g></svg>",
  ].join("\n");
}

/** Pixels per CSS pixel: 2, or less where the image would exceed the limits of browsers. */
const SCALE = 2;
const MAX_PIXELS = 64e6;

/** Return the picture as a PNG. */
export async function pngOf(drawing: Picture): Promise<Blob> {
  const url = URL.createObjectURL(new Blob([svgText(drawing)], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const scale = Math.min(SCALE, Math.sqrt(MAX_PIXELS / (image.width * image.height)));
    const canvas = document.createElement("canvas");
    canvas.width = Math.floor(image.width * scale);
    canvas.height = Math.floor(image.height * scale);
    const context = canvas.getContext("2d");
    if (context === null) throw new Error("The browser has no 2D canvas.");
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) => {
      canvas.toBlob((blob) =>
        blob === null ? reject(new Error("The browser could not create a PNG.")) : resolve(blob),
      );
    });
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** Call `read` with an element that has the colors of the light theme. */
export function withLightTheme<T>(place: Element, read: (holder: HTMLElement) => T): T {
  const holder = document.createElement("div");
  holder.dataset["theme"] = "light";
  holder.hidden = true;
  place.append(holder);
  try {
    return read(holder);
  } finally {
    holder.remove();
  }
}
