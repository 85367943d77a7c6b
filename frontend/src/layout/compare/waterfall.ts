import type { WaterfallStep } from "../../payload/responses/comparison";

/** A bar of the waterfall: from where the ones before it have led, to where it leads. */
export interface WaterfallBar {
  label: string;
  kind: "total" | "grown" | "shrunk";
  bytes_a: number;
  bytes_b: number;
  /** Of the axis, 0 to 1. */
  from: number;
  to: number;
}

export interface Waterfall {
  bars: WaterfallBar[];
  /** Bytes at the beginning of the axis: above 0 where the changes are small beside the totals. */
  origin: number;
  end: number;
  /** How many steps changed nothing and have no bar. */
  unchanged: number;
}

/** The axis starts at 0 unless the bars would then take less than a third of it. */
const MIN_SHARE_USED = 1 / 3;

/** From the total of A to that of B. The bars meet: each begins where the one before it ends. */
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
