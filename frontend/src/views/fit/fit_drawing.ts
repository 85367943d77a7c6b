import { cssColor, roleColors } from "../../base/colors";
import { ROLES } from "../../payload/generated/constants";
import { copySvg } from "../drawing/copy_svg";
import type { Picture } from "../drawing/picture";
import { SvgSurface } from "../drawing/svg_surface";

const LINE_HEIGHT = 20;
const SWATCH = 10;
const GAP = 18;

/** Draw a chart for a file, with the legend of roles, in the colors of the light theme. */
export function drawFit(chart: SVGSVGElement, roles: readonly number[]): Picture {
  const { width, height, shapes } = copySvg(chart);
  const surface = new SvgSurface();
  let [left, middle] = [0, height + LINE_HEIGHT / 2];
  for (const role of roles) {
    const wide = SWATCH + 6 + surface.measureText(ROLES[role]).width + GAP;
    if (left > 0 && left + wide > width) [left, middle] = [0, middle + LINE_HEIGHT];
    surface.fillStyle = cssColor(roleColors(false)[role]);
    surface.fillRect(left, middle - SWATCH / 2, SWATCH, SWATCH);
    surface.fillStyle = "#1b1d21";
    surface.fillText(ROLES[role], left + SWATCH + 6, middle);
    left += wide;
  }
  return { width, height: middle + LINE_HEIGHT / 2, shapes: [...shapes, ...surface.shapes] };
}
