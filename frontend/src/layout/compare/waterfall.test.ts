import { describe, expect, it } from "vitest";
import { waterfall } from "./waterfall";

const step = (label: string, bytes_a: number, bytes_b: number) => ({ label, bytes_a, bytes_b });

describe("waterfall", () => {
  it("leads from A to B: each bar starts where the previous one ends", () => {
    const { bars, origin, unchanged } = waterfall(100, 60, [
      step("x", 10, 50),
      step("same", 5, 5),
      step("y", 85, 5),
    ]);
    expect(bars.map(({ label, kind, from, to }) => [label, kind, from * 140, to * 140])).toEqual([
      ["A", "total", 0, 100],
      ["x", "grown", 100, 140],
      ["y", "shrunk", 140, 60],
      ["B", "total", 0, 60],
    ]);
    expect(origin).toBe(0);
    expect(unchanged).toBe(1);
  });

  it("starts the axis above 0 for small changes, so that they are visible", () => {
    const { bars, origin, end } = waterfall(1000, 1010, [step("x", 0, 10)]);
    expect([origin, end]).toEqual([990, 1010]);
    expect(bars.map(({ from, to }) => [from, to])).toEqual([
      [0, 0.5],
      [0.5, 1],
      [0, 1],
    ]);
  });

  it("contains only the totals if nothing changed", () => {
    const { bars, origin } = waterfall(7, 7, [step("x", 7, 7)]);
    expect(bars.map(({ label, from, to }) => [label, from, to])).toEqual([
      ["A", 0, 1],
      ["B", 0, 1],
    ]);
    expect(origin).toBe(0);
    expect(waterfall(0, 0, []).bars).toHaveLength(2);
  });
});
