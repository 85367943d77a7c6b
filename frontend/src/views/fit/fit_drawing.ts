import { copySvg } from "../drawing/copy_svg";
import type { Picture } from "../drawing/picture";
import { roleLegend } from "../drawing/role_legend";

/** Draw a chart for a file, with the legend of roles, in the colors of the light theme. */
export function drawFit(chart: SVGSVGElement, roles: readonly number[]): Picture {
  return { ...copySvg(chart), legend: roleLegend(roles) };
}
