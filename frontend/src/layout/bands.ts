import type { Growth, Ledger } from "../payload/generated/answers";
import { byteTicks, type Tick, timeTicks } from "./axis";

/** A holder of memory: its bytes at each moment, stacked on those of the holders before it. */
interface Band {
  holder: string;
  bytes: readonly number[];
  top: number[];
  most: number;
}

interface LedgerChart {
  bands: Band[];
  /** Bytes at the top of the chart, and the times at its ends in ns. */
  max: number;
  span: readonly [number, number];
  bytes: Tick[];
  times: Tick[];
}

/** Lay out a ledger, whose holders add up to the size of the memory. */
export function ledgerChart({ holders, time_ns: times }: Ledger, mostTimes: number): LedgerChart {
  const sum = times.map(() => 0);
  const bands = holders.map(({ holder, bytes }) => {
    bytes.forEach((size, i) => (sum[i] += size));
    return { holder, bytes, top: [...sum], most: bytes.reduce((most, size) => Math.max(most, size), 0) };
  });
  const max = sum.reduce((most, size) => Math.max(most, size), 1);
  const first = times.at(0) ?? 0;
  const span = [first, Math.max(times.at(-1) ?? 0, first + 1)] as const;
  return { bands, max, span, bytes: byteTicks([0, max], 5), times: timeTicks(span, mostTimes) };
}

/** Return the number of the moment that is nearest to a time. */
export function nearestMoment(times: readonly number[], time: number): number {
  const apart = times.map((at) => Math.abs(at - time));
  return apart.indexOf(Math.min(...apart));
}

/** Bytes of one site over the profiles, stacked on the sites below it. */
export interface GrowthBand {
  /** Index of the site; -1 is all other sites together. */
  site: number;
  /** Bytes for each profile. */
  bottom: number[];
  top: number[];
}

interface GrowthChart {
  bands: GrowthBand[];
  max: number;
  ticks: Tick[];
}

const MAX_BANDS = 7;

/** Lay out the stacked areas. Growing sites are on top, so that constant areas below keep their growth visible. */
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
