import { cssColor, roleColors } from "../../base/colors";
import { ROLES } from "../../payload/generated/constants";
import type { LegendEntry } from "./picture";

/** Return the legend of some roles, in their order, in the colors of the light theme. */
export function roleLegend(roles: Iterable<number>): LegendEntry[] {
  return [...new Set(roles)]
    .filter((role) => role < ROLES.length)
    .sort((a, b) => a - b)
    .map((role) => ({ color: cssColor(roleColors(false)[role]), label: ROLES[role] }));
}
