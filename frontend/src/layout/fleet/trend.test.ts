import { describe, expect, it } from "vitest";
import type { TrendPoint, TrendSeries } from "../../payload/generated/answers";
import { nearestMark } from "../axis";
import { placeLabels, trendChart } from "./trend";

const GIB = 2 ** 30;

function point(day: string, peak: number, because: string | null = null): TrendPoint {
  return {
    day,
    capture: `run/${day}`,
    recording: "",
    peak_bytes: peak * GIB,
    largest_bytes: (peak + 0.5) * GIB,
    count: 4,
    rise_bytes: because === null ? 0 : GIB,
    changes: [],
    because,
  };
}

function series(...points: TrendPoint[]): TrendSeries {
  return { name: "HBM", is_program: false, points };
}

const DAYS = series(
  point("2026-11-02", 28),
  point("2026-11-03", 29, "a.py:1"),
  point("2026-11-10", 29),
  point("2026-11-12", 30, "b.py:2"),
);

describe("the trend chart", () => {
  it("places days at their dates, and captures at equal distances", () => {
    expect(trendChart(DAYS, "day", 10).marks.map(({ x }) => x)).toEqual([0, 0.1, 0.8, 1]);
    expect(trendChart(DAYS, "capture", 10).marks.map(({ x }) => x)).toEqual([0, 1 / 3, 2 / 3, 1]);
    expect(trendChart(series(point("2026-11-02", 28)), "day", 10).marks[0].x).toBe(0.5);
  });

  it("has all values within the plot, and draws noise as a flat line", () => {
    for (const { y, upper } of trendChart(DAYS, "day", 10).marks)
      for (const share of [y, upper]) expect(share > 0 && share < 1).toBe(true);
    const noise = series(point("2026-11-02", 28), point("2026-11-03", 28.01), point("2026-11-04", 28));
    const { marks } = trendChart(noise, "day", 10);
    expect(Math.abs(marks[1].y - marks[0].y)).toBeLessThan(0.01);
  });

  it("labels as many points as there is room for", () => {
    expect(trendChart(DAYS, "day", 4).times.map(({ label }) => label)).toEqual(["2026-11-02", "2026-11-10"]);
    expect(trendChart(DAYS, "capture", 3).times).toHaveLength(4);
  });

  it("finds the mark near the pointer", () => {
    const chart = trendChart(DAYS, "day", 10);
    const size = { width: 1000, height: 200 };
    const y = (1 - chart.marks[2].y) * 200;
    expect(nearestMark(chart.marks, { x: 795, y }, size, 20)?.point).toBe(2);
    expect(nearestMark(chart.marks, { x: 500, y }, size, 20)).toBe(null);
  });

  it("keeps texts of rises apart, and within the plot", () => {
    const crowded = series(
      ...Array.from({ length: 20 }, (_, i) => point(`2026-11-${10 + i}`, i + 1, "x".repeat(300))),
    );
    const chart = trendChart(crowded, "day", 10);
    const labels = placeLabels(chart, crowded, ({ because }) => because ?? "", 600, 3);
    expect(labels).toHaveLength(3);
    expect(new Set(labels.map(({ lane }) => lane)).size).toBe(3);
    for (const { text } of labels) expect(text.length * 6).toBeLessThan(600);
    const apart = placeLabels(trendChart(DAYS, "day", 10), DAYS, ({ because }) => because ?? "", 600, 3);
    expect(apart.map(({ lane, anchor }) => [lane, anchor])).toEqual([
      [0, "start"],
      [0, "end"],
    ]);
  });
});
