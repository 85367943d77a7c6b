import { describe, expect, it } from "vitest";
import { fitCandidate, fitStep, LIMIT, TWO_CHOICES } from "../../payload/responses/fixture";
import { nearestMark } from "../axis";
import { boundBy, fitChart, hasCurve, highest, largestLines, limitsOf } from "./chart";

const step = fitStep([
  fitCandidate(0, 4),
  fitCandidate(50, 8, { rematerialized: 3 }),
  fitCandidate(100, 18),
  fitCandidate(0, 2, { choice: 1 }),
  fitCandidate(100, null, { choice: 1 }),
]);

describe("the chart of a search", () => {
  const chart = fitChart(step, 0);

  it("has a line for each choice, with the candidates in order", () => {
    expect(chart.lines.map((line) => line.map(({ candidate }) => candidate))).toEqual([
      [0, 1, 2],
      [3, 4],
    ]);
    expect(chart.lines.flat().map(({ state }) => state)).toEqual([
      "fits",
      "recomputes",
      "refused",
      "fits",
      "failed",
    ]);
    const [first, second, third] = chart.lines[0];
    expect(second.x).toBeCloseTo((first.x + third.x) / 2);
    expect(first.x).toBeCloseTo(1 - third.x);
    expect(second.y / first.y).toBeCloseTo(2);
  });

  it("stacks the selected choice's roles up to its peak, persistent ones below", () => {
    expect(chart.bands.map(({ role }) => role)).toEqual([1, 5]);
    const top = chart.bands[1].top;
    expect(top).toHaveLength(3);
    top.forEach((share, i) => expect(share).toBeCloseTo(chart.lines[0][i].y));
    expect(fitChart(step, 1).bands[0].x).toHaveLength(1);
  });

  it("has the limit as a rule, below the top", () => {
    expect(chart.limits).toEqual([{ targets: ["v5e:2x2"], bytes: LIMIT, y: LIMIT / chart.max }]);
  });

  it("labels the values where they are few", () => {
    expect(chart.values.map(({ label }) => label)).toEqual(["0", "50", "100"]);
    const many = fitStep(Array.from({ length: 40 }, (_, i) => fitCandidate(1000 + i, 1)));
    expect(fitChart(many, 0).values.length).toBeLessThanOrEqual(13);
  });
});

describe("the top of the chart", () => {
  it("keeps a candidate far above the limit from flattening the others", () => {
    expect(highest([fitCandidate(8, 4), fitCandidate(9, 160)])).toBeLessThan(1.4 * LIMIT);
    expect(fitChart(fitStep([fitCandidate(8, 4), fitCandidate(9, 160)]), 0).lines[0][1].above).toBe(true);
  });

  it("is the limit where nothing was compiled", () => {
    expect(highest([fitCandidate(8, null)])).toBeGreaterThan(LIMIT);
  });

  it("is that of the candidates where the limit is far above them, or unknown", () => {
    expect(highest([fitCandidate(8, 1)])).toBeLessThan(LIMIT / 8);
    expect(fitChart(fitStep([fitCandidate(8, 1), fitCandidate(9, 1)]), 0).limits[0].y).toBeNull();
    expect(highest([fitCandidate(8, 1, { limit_bytes: null })])).toBeLessThan(LIMIT / 8);
  });
});

it("names the targets that share a limit", () => {
  const found = limitsOf([
    fitCandidate(8, 1),
    fitCandidate(8, 1, { target: "v5e:4x4" }),
    fitCandidate(8, 1, { target: "cpu:8", limit_bytes: null }),
    fitCandidate(8, 1, { target: "h100:8", limit_bytes: 5 }),
  ]);
  expect(found).toEqual([
    { targets: ["h100:8"], bytes: 5 },
    { targets: ["v5e:2x2", "v5e:4x4"], bytes: LIMIT },
  ]);
});

it("draws a curve only along a knob with two values", () => {
  expect(hasCurve(step)).toBe(true);
  expect(hasCurve(fitStep([fitCandidate(8, 4), fitCandidate(8, 4, { choice: 1 })]))).toBe(false);
  expect(hasCurve(fitStep([fitCandidate(null, 4), fitCandidate(null, 4, { choice: 1 })], ""))).toBe(false);
});

it("finds the mark under the pointer, and none where all are far", () => {
  const { lines } = fitChart(step, 0);
  const size = { width: 1000, height: 300 };
  const at = { x: lines[0][1].x * size.width + 3, y: (1 - lines[0][1].y) * size.height };
  expect(nearestMark(lines.flat(), at, size, 10)?.candidate).toBe(1);
  expect(nearestMark(lines.flat(), { ...at, x: at.x + 200 }, size, 10)).toBeNull();
});

const tableStep = TWO_CHOICES;

describe("the table of largest values", () => {
  const lines = largestLines(tableStep);

  it("has a line for each choice, also where none fits", () => {
    expect(lines.map(({ largest, without }) => [largest?.value, without?.value])).toEqual([
      [52, 8],
      [undefined, undefined],
    ]);
  });

  it("names parts of the peak, else roles", () => {
    const parts = [
      { name: "activations of layer_*", bytes: 2 ** 31 },
      { name: "tiny", bytes: 1 },
    ];
    expect(boundBy(fitCandidate(8, 4, { parts }))).toBe("activations of layer_* 50%");
    expect(boundBy(fitCandidate(8, null))).toBeNull();
  });
});
