import { describe, expect, it } from "vitest";
import { regionsOf, rowsOf } from "../fixture";
import { indexBlocks, timelineBlocks } from "../timeline/blocks";
import { emptyRects, layoutTimeline } from "../timeline/rects";
import { positionAxis, stepAt, timeAxis } from "./axis";

/** Two simultaneous events, a pause of ten seconds, then two events 5 ns apart. */
const TIMES = Float64Array.of(100, 100, 10_000_000_100, 10_000_000_105);

describe("timeAxis", () => {
  const axis = timeAxis(TIMES);

  it("extends from the first event to slightly past the last", () => {
    expect(axis.extent[0]).toBe(100);
    expect(axis.extent[1]).toBeCloseTo(10_000_000_105 + 200_000_000, -1);
  });

  it("converts positions to times, and fractions to shares of the following pause", () => {
    expect([0, 1, 2, 3].map(axis.at)).toEqual([...TIMES]);
    expect(axis.at(1.5)).toBe(5_000_000_100);
    expect(axis.at(-1)).toBe(100);
    expect(axis.at(9)).toBe(axis.extent[1]);
  });

  it("converts times to the last event at or before them", () => {
    expect(axis.positionAt(5_000_000_100)).toBe(1.5);
    expect(Math.floor(axis.positionAt(10_000_000_104))).toBe(2);
    expect(axis.positionAt(0)).toBe(0);
    expect(axis.positionAt(1e12)).toBe(4);
  });

  it("restores a window of nanoseconds next to a pause of seconds", () => {
    const window = [10_000_000_098, 10_000_000_107] as const;
    const back = axis.fromSaved(axis.toSaved(window));
    expect(back[0]).toBeCloseTo(window[0], 3);
    expect(back[1]).toBeCloseTo(window[1], 0);
  });

  it("saves the full extent as null", () => {
    expect(axis.toSaved(axis.extent)).toBeNull();
    expect(axis.fromSaved(null)).toEqual(axis.extent);
  });
});

describe("positionAxis", () => {
  it("uses positions as values", () => {
    const axis = positionAxis(10);
    expect([axis.at(3.5), axis.positionAt(3.5)]).toEqual([3.5, 3.5]);
    expect(axis.fromSaved(axis.toSaved([2, 5]))).toEqual([2, 5]);
  });
});

describe("stepAt", () => {
  it("finds the step that contains a value", () => {
    expect([0, 3, 4, 8, 20].map((at) => stepAt([0, 4, 8], at))).toEqual([0, 0, 1, 1, 1]);
  });
});

describe("blocks on a time axis", () => {
  const rows = rowsOf([
    { size: 10, defined: 0, last_used: 1, offset: 0 },
    { size: 10, defined: 2, last_used: 2, offset: 10 },
    { size: 10, defined: 3, last_used: 3, offset: 20 },
  ]);
  const clock = Float64Array.of(0, 10, 80, 90, 100);
  const index = indexBlocks(
    timelineBlocks(rows, regionsOf([{ size: 30, temporary: true }]), 4, "all", clock),
  );
  const edges = (from: number, to: number): number[][] => {
    const rects = layoutTimeline(index, { x: [from, to], y: [0, 30] }, 100, 30, emptyRects(3));
    return Array.from({ length: rects.length }, (_, i) => [rects.row[i], rects.x0[i], rects.x1[i]]).sort(
      (a, b) => a[0] - b[0],
    );
  };

  it("start and end at the times of their events", () => {
    expect(edges(0, 100)).toEqual([
      [0, 0, 80],
      [1, 80, 90],
      [2, 90, 100],
    ]);
  });

  it("are clipped to the window, and found within one event", () => {
    expect(edges(40, 60)).toEqual([[0, 0, 100]]);
    expect(edges(85, 95)).toEqual([
      [1, 0, 50],
      [2, 50, 100],
    ]);
  });
});
