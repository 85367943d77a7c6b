import { describe, expect, it } from "vitest";
import { fitCandidate, fitStep } from "../../payload/responses/fixture";
import { fitFront, hasRates } from "./front";

const slow = fitCandidate(8, 4, { items_per_second: 100, on_front: true });
const fast = fitCandidate(16, 8, { items_per_second: 200, on_front: true });
const beaten = fitCandidate(24, 12, { items_per_second: 150 });
const failed = fitCandidate(32, null);

describe("the chart of memory and time", () => {
  const step = fitStep([fast, slow, beaten, failed]);

  it("joins the fastest candidates of a target in rising memory", () => {
    const { lines, points, limits } = fitFront(step);
    expect(lines.map(({ target, points: all }) => [target, ...all.map((each) => each.candidate)])).toEqual([
      ["v5e:2x2", 1, 0],
    ]);
    expect(points.map(({ candidate }) => candidate)).toEqual([2, 0, 1]);
    expect(points[1].x).toBeCloseTo(2 * points[2].x);
    expect(points[1].y).toBeCloseTo(2 * points[2].y);
    expect(limits.map(({ share }) => share < 1)).toEqual([true]);
  });

  it("is shown where the times of two candidates are known", () => {
    expect(hasRates(step)).toBe(true);
    expect(hasRates(fitStep([fast, failed]))).toBe(false);
  });
});
