import { hasBlock } from "../../layout/timeline/blocks";
import { hasStack } from "../../layout/usage/live_set";
import { ROLES } from "../../payload/generated/constants";
import { type LegendEntry, roleLegend } from "../drawing/picture";
import type { Scene } from "./drawing/scene";

/** Return the legend of a saved picture. */
export function pictureLegend(scene: Scene): LegendEntry[] {
  const roles = rolesOf(scene);
  return roles.every((role) => role === 0) ? [{ color: "", label: legendOf(scene) }] : roleLegend(roles);
}

/** Legend for recordings without roles, where colors stand for sizes. */
function legendOf({ program, holes }: Scene): string {
  const stack = !hasStack(program) ? "" : holes ? "; the stack has no address" : ", and stack";
  return `the stronger the color, the larger; gray: live before the recording${stack}`;
}

function rolesOf({ rows, regions, show }: Scene): number[] {
  const seen = new Set<number>();
  for (let row = 0; row < rows.length && seen.size < ROLES.length; row++)
    if (hasBlock(rows, regions, row, show)) seen.add(rows.role[row]);
  return [...seen].sort((a, b) => a - b);
}
