import { replaceControls } from "../../render/painter/svg";
import type { Picture } from "./picture";
import { withLightTheme } from "./picture";

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
