import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { contrast } from "../base/colors";

/** Colors of a theme by variable, read from the stylesheet. */
function themes(): [string, Map<string, number>][] {
  const css = readFileSync(new URL("./base.css", import.meta.url), "utf-8");
  return [...css.matchAll(/:root([^{]*)\{([^}]*)\}/g)].map(([, selector, body]) => [
    selector.includes("dark") ? "dark" : "light",
    new Map(
      [...body.matchAll(/--([\w-]+): #([0-9a-f]{6});/g)].map(([, name, hex]) => [name, parseInt(hex, 16)]),
    ),
  ]);
}

const TEXTS = ["ink", "muted", "accent", "warn", "bad", "good"];
const GROUNDS = ["ground", "surface", "raised", "accent-soft", "warn-soft", "bad-soft"];

describe.each(themes())("the %s theme", (_, colors) => {
  it.each(TEXTS)("has enough contrast for text in --%s on every background", (text) => {
    const least = GROUNDS.map((ground) => contrast(colors.get(text) ?? 0, colors.get(ground) ?? 0));
    expect(Math.min(...least)).toBeGreaterThanOrEqual(4.5); // WCAG 2, level AA
  });
});
