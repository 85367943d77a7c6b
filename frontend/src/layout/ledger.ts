import type { Ledger } from "../payload/generated/answers";
import { byteTicks, type Tick, timeTicks } from "./axis/ticks";

/** A holder of memory: its bytes at each moment, stacked on those of the holders before it. */
interface Band {
  holder: string;
  bytes: readonly number[];
  top: number[];
  most: number;
}

export interface LedgerChart {
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
