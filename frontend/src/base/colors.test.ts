import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { contrast, FIRST_SIZE_COLOR, rowColors, SIZE_COLORS } from "./colors";

describe.each([
  ["light", false, 0xffffff],
  ["dark", true, 0x1a1d21],
] as const)("the colors of sizes in the %s theme", (_, dark, background) => {
  const sizes = rowColors(dark).slice(FIRST_SIZE_COLOR);

  it("are one scale: the larger, the more they contrast with the page", () => {
    expect(sizes.length).toBe(SIZE_COLORS);
    const contrasts = sizes.map((size) => contrast(size, background));
    expect(contrasts).toEqual([...contrasts].sort((a, b) => a - b));
    contrasts.slice(1).forEach((each, i) => expect(each / contrasts[i]).toBeGreaterThan(1.15));
  });

  it("are visible on the page", () => {
    for (const size of sizes) expect(contrast(size, background)).toBeGreaterThan(1.5);
  });
});

/** Colors of a theme by variable, read from the stylesheet. */
function themes(): [string, Map<string, number>][] {
  const css = readFileSync(new URL("../styles/base.css", import.meta.url), "utf-8");
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
