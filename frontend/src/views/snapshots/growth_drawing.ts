import { cssColor } from "../../base/colors";
import { formatBytes } from "../../base/units";
import type { GrowthBand } from "../../layout/compare/growth_chart";
import type { Growth } from "../../payload/generated/answers";
import { mixPixels } from "../../render/frame/palette";
import { copySvg } from "../drawing/copy_svg";
import type { Picture } from "../drawing/picture";
import { withLightTheme } from "../drawing/picture";
import { SvgSurface } from "../drawing/svg_surface";

const LINE_HEIGHT = 18;
const SWATCH = 10;

/** Strength of a band's color: the band that grows most is on top and stands out. */
export function highlightShare(band: number, count: number): number {
  return (count < 2 ? 1 : band / (count - 1)) ** 1.5;
}

/** Return the bytes of a band in the last profile. */
export function lastBytes({ top, bottom }: GrowthBand): number {
  return top[top.length - 1] - bottom[bottom.length - 1];
}

/** Draw the chart for a file, with a legend that the page shows as a list. */
export function drawGrowth(chart: SVGSVGElement, bands: readonly GrowthBand[], { sites }: Growth): Picture {
  const { width, height, shapes } = copySvg(chart);
  const surface = new SvgSurface();
  const read = (holder: Element, name: string): number =>
    Number.parseInt(getComputedStyle(holder).getPropertyValue(name).trim().slice(1), 16);
  const [steady, growing, ink] = withLightTheme(document.body, (holder) =>
    ["--steady", "--growing", "--ink"].map((name) => read(holder, name)),
  );
  bands.forEach((band, i) => {
    const middle = height + (bands.length - i) * LINE_HEIGHT;
    const site = band.site < 0 ? null : sites[band.site];
    surface.fillStyle = cssColor(mixPixels(steady, growing, highlightShare(i, bands.length)) & 0xffffff);
    surface.fillRect(0, middle - SWATCH / 2, SWATCH, SWATCH);
    surface.fillStyle = cssColor(ink);
    const words = [site?.site ?? "all others", formatBytes(lastBytes(band)), site?.verdict ?? ""];
    surface.fillText(words.filter(Boolean).join(", "), SWATCH + 8, middle);
  });
  return { width, height: height + (bands.length + 1) * LINE_HEIGHT, shapes: [...shapes, ...surface.shapes] };
}
