import type { Growth } from "../../payload/generated/answers";
import { byteTicks, type Tick } from "../axis/ticks";

/** Bytes of one site over the profiles, stacked on the sites below it. */
export interface GrowthBand {
  /** Index of the site; -1 is all other sites together. */
  site: number;
  /** Bytes for each profile. */
  bottom: number[];
  top: number[];
}

export interface GrowthChart {
  bands: GrowthBand[];
  max: number;
  ticks: Tick[];
}

const MAX_BANDS = 7;

/**
 * Lay out the stacked areas. Growing sites are on top, so that constant areas below keep their growth
 * visible.
 */
export function growthChart({ sites, rest, points }: Growth): GrowthChart {
  const moved = (curve: readonly number[]): number => Math.max(...curve) - Math.min(...curve);
  const drawn = sites
    .map((_, site) => site)
    .sort((a, b) => sum(sites[b].curve) - sum(sites[a].curve))
    .slice(0, MAX_BANDS);
  for (const site of sites.keys())
    if (sites[site].verdict === "leak" && !drawn.includes(site) && drawn.length < 2 * MAX_BANDS)
      drawn.push(site);
  drawn.sort((a, b) => moved(sites[a].curve) - moved(sites[b].curve));
  const others = points.map(
    (_, i) =>
      (rest[i] ?? 0) + sum(sites.filter((_, site) => !drawn.includes(site)).map(({ curve }) => curve[i])),
  );
  const bands: GrowthBand[] = [];
  let bottom = points.map(() => 0);
  const lay = (site: number, curve: readonly number[]): void => {
    const top = bottom.map((bytes, i) => bytes + curve[i]);
    bands.push({ site, bottom, top });
    bottom = top;
  };
  if (others.some((bytes) => bytes > 0)) lay(-1, others);
  for (const site of drawn) lay(site, sites[site].curve);
  const max = Math.max(1, ...points.map(({ bytes }) => bytes));
  return { bands, max, ticks: byteTicks([0, max], 5) };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
