import type { Surface } from "./svg_surface";

/** Return the text, shortened with an ellipsis to fit; empty if too little would remain. */
export function fitText(context: Pick<Surface, "measureText">, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  // Digits and letters of the system fonts are about 6 px wide at 11 px.
  let length = Math.floor(width / 6);
  while (length > 2 && context.measureText(`${text.slice(0, length)}…`).width > width) length -= 1;
  return length > 2 ? `${text.slice(0, length)}…` : "";
}
