import type { FitStep } from "../../payload/generated/answers";
import { stateOf } from "../../payload/responses/fit";
import { positionTicks, type Tick } from "../axis";
import { type FitPoint, highest, limitsOf } from "./chart";

const MAX_RATE_TICKS = 6;
const MARGIN = 1.12;

/** A candidate in the chart of memory and time, none of which is above it. */
export type FrontPoint = Omit<FitPoint, "above">;

export interface FitFront {
  points: FrontPoint[];
  /** For each target its fastest candidates, in rising memory. */
  lines: { target: string; points: FrontPoint[] }[];
  limits: { targets: string[]; bytes: number; share: number }[];
  rates: Tick[];
  max: { bytes: number; rate: number };
}

/** Return whether the times of at least two candidates are known. */
export function hasRates({ candidates }: FitStep): boolean {
  return candidates.filter((each) => each.items_per_second > 0 && each.reserved_bytes !== null).length > 1;
}

/** Lay out reserved memory, across, and the estimated rate, up. Candidates far above the limit are left out. */
export function fitFront({ candidates }: FitStep): FitFront {
  const bytes = highest(candidates);
  const timed = candidates.flatMap((each, i) =>
    each.items_per_second > 0 && each.reserved_bytes !== null && each.reserved_bytes <= bytes ? [i] : [],
  );
  const rate = MARGIN * Math.max(...timed.map((i) => candidates[i].items_per_second), Number.MIN_VALUE);
  const point = (i: number): FrontPoint => ({
    candidate: i,
    x: (candidates[i].reserved_bytes ?? 0) / bytes,
    y: candidates[i].items_per_second / rate,
    state: stateOf(candidates[i]),
  });
  const rank = ({ candidate }: FrontPoint): number => Number(candidates[candidate].on_front);
  const best = timed.filter((i) => candidates[i].on_front).map(point);
  const targets = [...new Set(best.map(({ candidate }) => candidates[candidate].target))];
  return {
    points: timed.map(point).sort((a, b) => rank(a) - rank(b)), // the front on top
    lines: targets.map((target) => ({
      target,
      points: best
        .filter(({ candidate }) => candidates[candidate].target === target)
        .sort((a, b) => a.x - b.x),
    })),
    limits: limitsOf(candidates)
      .filter((limit) => limit.bytes <= bytes)
      .map((limit) => ({ ...limit, share: limit.bytes / bytes })),
    rates: positionTicks([0, rate], MAX_RATE_TICKS),
    max: { bytes, rate },
  };
}
