import { cssColor, roleColors } from "../../base/colors";
import { ROLES } from "../../payload/generated/constants";
import { escapeXml, replaceControls } from "../../render/painter/picture";

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
    `<svg xmlns="http://www.w3.org/2000/svg" width="${wide}" height="${high}" ` +
      `viewBox="0 0 ${wide} ${high}" font-family="${font}">`,
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

/** Style properties to copy: a saved file has no style sheet. */
const STYLES = [
  "fill",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "paint-order",
  "font-size",
  "font-weight",
  "opacity",
];
/** Attributes that only the page needs. */
const PAGE_ATTRIBUTES = ["class", "style", "role", "tabindex"];

/** Copy an SVG of the page with its styles in the light theme. */
export function copySvg(drawing: SVGSVGElement): Picture {
  const { width, height } = drawing.hasAttribute("viewBox")
    ? drawing.viewBox.baseVal
    : drawing.getBoundingClientRect();
  const size = { width, height };
  return withLightTheme(drawing.parentElement ?? document.body, (holder) => {
    const copy = drawing.cloneNode(true) as SVGSVGElement;
    holder.append(copy);
    const elements = [...copy.querySelectorAll("*")];
    const styles = elements.map((element) => {
      const style = getComputedStyle(element);
      return STYLES.map((name) => [name, plainColor(style.getPropertyValue(name))] as const);
    });
    elements.forEach((element, i) => {
      if (element.localName !== "title")
        for (const [name, value] of styles[i]) element.setAttribute(name, value);
      for (const name of element.getAttributeNames())
        if (PAGE_ATTRIBUTES.includes(name) || name.startsWith("aria-") || name.startsWith("data-"))
          element.removeAttribute(name);
    });
    const writer = new XMLSerializer();
    return {
      ...size,
      shapes: [...copy.childNodes].map((node) => replaceControls(writer.serializeToString(node))),
    };
  });
}

/** Convert a computed color to hex: browsers give "color(srgb 0.1 0.2 0.3)", which few SVG programs read. */
export function plainColor(value: string): string {
  const [, parts = "", alpha = "1"] = /^color\(srgb ([\d.e\- ]+?)(?: \/ ([\d.]+))?\)$/.exec(value) ?? [];
  if (parts === "") return value === "rgba(0, 0, 0, 0)" ? "none" : value;
  const [red, green, blue] = parts
    .split(" ")
    .map((part) => Math.round(255 * Math.min(Math.max(Number(part), 0), 1)));
  return Number(alpha) === 0 ? "none" : `rgb(${red}, ${green}, ${blue})`;
}

/** Return the legend of some roles, in their order, in the colors of the light theme. */
export function roleLegend(roles: Iterable<number>): LegendEntry[] {
  return [...new Set(roles)]
    .filter((role) => role < ROLES.length)
    .sort((a, b) => a - b)
    .map((role) => ({ color: cssColor(roleColors(false)[role]), label: ROLES[role] }));
}
