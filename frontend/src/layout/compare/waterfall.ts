import type { WaterfallStep } from "../../payload/generated/answers";

/** A bar of the waterfall: from the level of the bars before it to its own level. */
export interface WaterfallBar {
  label: string;
  kind: "total" | "grown" | "shrunk";
  bytes_a: number;
  bytes_b: number;
  /** Share of the axis, 0 to 1. */
  from: number;
  to: number;
}

export interface Waterfall {
  bars: WaterfallBar[];
  /** Bytes at the start of the axis; above 0 if the changes are small compared to the totals. */
  origin: number;
  end: number;
  /** Number of steps without a change, which have no bar. */
  unchanged: number;
}

/** The axis starts at 0 unless the bars would then fill less than a third of it. */
const MIN_SHARE_USED = 1 / 3;

/** Lay out bars from the total of A to the total of B. Each bar starts where the previous one ends. */
export function waterfall(totalA: number, totalB: number, steps: readonly WaterfallStep[]): Waterfall {
  const changed = steps.filter((step) => step.bytes_a !== step.bytes_b);
  let level = totalA;
  const spans = changed.map((step) => {
    const from = level;
    level += step.bytes_b - step.bytes_a;
    return { step, from, to: level };
  });
  const levels = [totalA, totalB, ...spans.map(({ to }) => to)];
  const [least, most] = [Math.min(...levels), Math.max(...levels, 1)];
  const small = most > least && most - least < MIN_SHARE_USED * most;
  const origin = small ? Math.max(0, least - (most - least)) : 0;
  const end = most;
  const at = (bytes: number): number => (bytes - origin) / Math.max(end - origin, 1);
  const total = (label: string, bytes: number): WaterfallBar => ({
    label,
    kind: "total",
    bytes_a: bytes,
    bytes_b: bytes,
    from: 0,
    to: at(bytes),
  });
  return {
    bars: [
      total("A", totalA),
      ...spans.map(({ step, from, to }): WaterfallBar => ({
        ...step,
        kind: to > from ? "grown" : "shrunk",
        from: at(from),
        to: at(to),
      })),
      total("B", totalB),
    ],
    origin,
    end,
    unchanged: steps.length - changed.length,
  };
}
