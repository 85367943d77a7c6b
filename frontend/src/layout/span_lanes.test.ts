import { describe, expect, it } from "vitest";
import { ANNOTATION, EXECUTION, OUT_OF_MEMORY, STEP } from "../payload/recording";
import { positionOfTime, spanLanes, spansFrom } from "./span_lanes";
import { textColumn } from "./timeline_fixture";

describe("spanLanes", () => {
  const spansOf = (spans: [number, number, number?][]): Parameters<typeof spanLanes>[0] => ({
    length: spans.length,
    name: textColumn(spans.map(() => "")),
    kind: Uint8Array.from(spans, ([, , kind]) => kind ?? STEP),
    start_ns: Float64Array.from(spans, ([start]) => start),
    end_ns: Float64Array.from(spans, ([, end]) => end),
  });

  it("puts what follows in one lane and what is inside below", () => {
    const { lane, count } = spanLanes(
      spansOf([
        [0, 4],
        [0, 10],
        [4, 9],
        [10, 12],
      ]),
    );
    expect([...lane]).toEqual([1, 0, 1, 0]);
    expect(count).toBe(2);
  });

  it("gives each kind lanes of its own, where memory ran out on top", () => {
    const { lane, count, kinds } = spanLanes(
      spansOf([
        [0, 10, ANNOTATION],
        [0, 9, STEP],
        [1, 5, ANNOTATION],
        [2, 4, EXECUTION],
        [4, 4, OUT_OF_MEMORY],
      ]),
    );
    expect([...lane]).toEqual([3, 1, 4, 2, 0]);
    expect(count).toBe(5);
    expect(kinds).toEqual([
      { kind: OUT_OF_MEMORY, first: 0 },
      { kind: STEP, first: 1 },
      { kind: EXECUTION, first: 2 },
      { kind: ANNOTATION, first: 3 },
    ]);
  });

  it("leaves nothing out, and counts what lies in lanes below", () => {
    const lanes = spanLanes(spansOf(Array.from({ length: 9 }, (_, i) => [i, 100])));
    expect(lanes.count).toBe(9);
    expect(spansFrom(lanes, 6)).toBe(3);
  });

  it("puts what overlaps without end into the last of many", () => {
    const { lane, count } = spanLanes(spansOf(Array.from({ length: 300 }, () => [0, 1])));
    expect(count).toBe(256);
    expect(lane[299]).toBe(255);
  });
});

describe("positionOfTime", () => {
  it("finds the event that has been, and the share of the pause after it", () => {
    const times = Float64Array.of(10, 20, 20, 40);
    expect([0, 10, 15, 30, 99].map((ns) => positionOfTime(times, ns))).toEqual([0, 0, 0.5, 2.5, 4]);
  });
});
