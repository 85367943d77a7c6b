import type { Surface } from "./svg_surface";

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
