import { replaceControls } from "../../render/painter/svg";
import type { Picture } from "./picture";
import { withLightTheme } from "./picture";

/** Looks that are in the page's styles, which a file of its own does not have. */
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
/** Attributes that are for the page alone. */
const PAGE_ATTRIBUTES = ["class", "style", "role", "tabindex"];

/** A drawing of the page as it looks on a light one. */
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

/** Colors as every program that shows SVG knows them: mixed ones are computed as "color(srgb 0.1 0.2 0.3)". */
export function plainColor(value: string): string {
  const [, parts = "", alpha = "1"] = /^color\(srgb ([\d.e\- ]+?)(?: \/ ([\d.]+))?\)$/.exec(value) ?? [];
  if (parts === "") return value === "rgba(0, 0, 0, 0)" ? "none" : value;
  const [red, green, blue] = parts
    .split(" ")
    .map((part) => Math.round(255 * Math.min(Math.max(Number(part), 0), 1)));
  return Number(alpha) === 0 ? "none" : `rgb(${red}, ${green}, ${blue})`;
}
