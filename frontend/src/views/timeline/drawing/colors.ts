import { rowColors } from "../../../base/colors";
import { makePalette, mixPixels, type Palette, pixelOf, rgbOf } from "../../../render/frame/palette";

export interface TimelineColors {
  ink: string;
  muted: string;
  surface: string;
  accent: string;
  palette: Palette;
}

/** Colors of the page, which canvases do not inherit. Regions are slightly darker than the background. */
export function readColors(dark: boolean, page: Element = document.documentElement): TimelineColors {
  const style = getComputedStyle(page);
  const read = (name: string, otherwise: string): string => {
    const value = style.getPropertyValue(name).trim();
    return /^#[0-9a-f]{6}$/i.test(value) ? value : otherwise;
  };
  const ink = read("--ink", dark ? "#e7e8ea" : "#1b1d21");
  const surface = read("--surface", dark ? "#1a1d21" : "#ffffff");
  const towardsInk = (share: number): number => rgbOf(mixPixels(pixelOfCss(surface), pixelOfCss(ink), share));
  return {
    ink,
    muted: read("--muted", "#808080"),
    surface,
    accent: read("--accent", "#2f6fb3"),
    palette: makePalette(rgbOfCss(surface), towardsInk(0.045), towardsInk(0.22), rowColors(dark)),
  };
}

function rgbOfCss(color: string): number {
  return Number.parseInt(color.slice(1), 16);
}

function pixelOfCss(color: string): number {
  return pixelOf(rgbOfCss(color));
}
