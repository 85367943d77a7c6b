import { describe, expect, it } from "vitest";
import {
  ANNOTATION_SPAN,
  EXECUTION_SPAN,
  OUT_OF_MEMORY_SPAN,
  STEP_SPAN,
} from "../../payload/generated/constants";
import { textColumn } from "../fixture";
import { countSpansFrom, layoutSpanLanes, positionOfTime } from "./span_lanes";

describe("layoutSpanLanes", () => {
  const spansOf = (spans: [number, number, number?][]): Parameters<typeof layoutSpanLanes>[0] => ({
    length: spans.length,
    name: textColumn(spans.map(() => "")),
    kind: Uint8Array.from(spans, ([, , kind]) => kind ?? STEP_SPAN),
    start_ns: Float64Array.from(spans, ([start]) => start),
    end_ns: Float64Array.from(spans, ([, end]) => end),
  });

  it("puts consecutive spans in one lane and nested spans below", () => {
    const { lane, count } = layoutSpanLanes(
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

  it("gives each kind its own lanes, with out-of-memory failures on top", () => {
    const { lane, count, kinds } = layoutSpanLanes(
      spansOf([
        [0, 10, ANNOTATION_SPAN],
        [0, 9, STEP_SPAN],
        [1, 5, ANNOTATION_SPAN],
        [2, 4, EXECUTION_SPAN],
        [4, 4, OUT_OF_MEMORY_SPAN],
      ]),
    );
    expect([...lane]).toEqual([3, 1, 4, 2, 0]);
    expect(count).toBe(5);
    expect(kinds).toEqual([
      { kind: OUT_OF_MEMORY_SPAN, first: 0 },
      { kind: STEP_SPAN, first: 1 },
      { kind: EXECUTION_SPAN, first: 2 },
      { kind: ANNOTATION_SPAN, first: 3 },
    ]);
  });

  it("keeps all spans, and counts those in lower lanes", () => {
    const lanes = layoutSpanLanes(spansOf(Array.from({ length: 9 }, (_, i) => [i, 100])));
    expect(lanes.count).toBe(9);
    expect(countSpansFrom(lanes, 6)).toBe(3);
  });

  it("puts unlimited overlap into the last of many lanes", () => {
    const { lane, count } = layoutSpanLanes(spansOf(Array.from({ length: 300 }, () => [0, 1])));
    expect(count).toBe(256);
    expect(lane[299]).toBe(255);
  });
});

describe("positionOfTime", () => {
  it("finds the last event and the share of the following pause", () => {
    const times = Float64Array.of(10, 20, 20, 40);
    expect([0, 10, 15, 30, 99].map((ns) => positionOfTime(times, ns))).toEqual([0, 0, 0.5, 2.5, 4]);
  });
});
