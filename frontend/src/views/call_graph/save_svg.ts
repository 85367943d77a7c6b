/** Looks of these elements are in the page's styles, which a file of its own does not have. */
const COPIED = ["fill", "stroke", "stroke-width", "stroke-dasharray", "font-size", "font-weight", "opacity"];

/** Gives the browser a drawing to save, with the colours that it has on the page. */
export function saveSvg(drawing: SVGSVGElement, name: string): void {
  const copy = drawing.cloneNode(true) as SVGSVGElement;
  const shown = drawing.querySelectorAll("*");
  copy.querySelectorAll("*").forEach((element, i) => {
    const style = getComputedStyle(shown[i]);
    for (const property of COPIED) element.setAttribute(property, style.getPropertyValue(property));
    element.removeAttribute("style");
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("font-family", "sans-serif");
  const text = new XMLSerializer().serializeToString(copy);
  const url = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
