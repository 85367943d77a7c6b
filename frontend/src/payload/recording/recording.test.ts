import { describe, expect, it } from "vitest";
import { EXECUTION_SPAN, STEP_SPAN } from "../generated/constants";
import { blankColumn, dictionaryOf, TextColumn } from "../tables/text_column";
import { fixtureRows } from "./fixture";
import { allocationSteps, type Program, type Spans } from "./recording";

function spansOf(...spans: [string, number, number, number][]): Spans {
  return {
    length: spans.length,
    name: new TextColumn(Uint32Array.from(spans.keys()), dictionaryOf(spans.map(([name]) => name))),
    kind: Uint8Array.from(spans, ([, kind]) => kind),
    start_ns: Float64Array.from(spans, ([, , start]) => start),
    end_ns: Float64Array.from(spans, ([, , , end]) => end),
  };
}

/** A program with events at 0, 10, 20, ... ns. */
function program(length: number): Program {
  const none = blankColumn(length);
  const time_ns = Float64Array.from({ length }, (_, i) => i * 10);
  return { length, name: none, op: none, op_name: none, computation: none, time_ns, unexplained: null };
}

/** One row allocated at each event, and one before the first event. */
const rows = fixtureRows([-1, 0, 1, 2, 3, 4, 5].map((start) => ({ start, end: 6 })));

function told(spans: Spans | null): string[] {
  const column = allocationSteps(rows, program(6), spans);
  return Array.from({ length: rows.length }, (_, row) => column.at(row));
}

describe("allocationSteps", () => {
  it("is the step that contains the allocation, whatever else runs then", () => {
    const spans = spansOf(
      ["train 2", STEP_SPAN, 40, 45],
      ["jit_f", EXECUTION_SPAN, 0, 100],
      ["train 1", STEP_SPAN, 10, 20],
    );
    expect(told(spans)).toEqual([
      "",
      "before the first step",
      "train 1",
      "train 1",
      "between steps",
      "train 2",
      "between steps",
    ]);
  });

  it("numbers steps with equal names and prefers the step that started last when two overlap", () => {
    const spans = spansOf(["train", STEP_SPAN, 0, 60], ["train", STEP_SPAN, 10, 25]);
    expect(told(spans).slice(1)).toEqual([
      "train #0",
      "train #1",
      "train #1",
      "train #0",
      "train #0",
      "train #0",
    ]);
  });

  it("is blank without steps", () => {
    expect(allocationSteps(rows, program(6), spansOf(["jit_f", EXECUTION_SPAN, 0, 100])).blank).toBe(true);
    expect(allocationSteps(rows, program(6), null).blank).toBe(true);
  });
});
