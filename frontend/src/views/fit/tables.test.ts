import { describe, expect, it } from "vitest";
import { candidateTexts, largestLines } from "../../layout/fit/chart";
import { fitStep, TWO_CHOICES } from "../../payload/responses/fixture";
import { savedLines, sortedBy } from "../tables/fixture";
import { candidateColumns, largestColumns } from "./tables";

const step = TWO_CHOICES;
const { candidates } = step;

describe("the table of candidates", () => {
  const columns = candidateColumns(step, () => undefined);

  it("is searched by target, knobs, changes, outcome and error", () => {
    const found = (text: string): number[] =>
      [0, 1, 2, 3].filter((i) => candidateTexts(candidates[i], "batch").some((each) => each.includes(text)));
    expect(found("v5e")).toEqual([0, 1, 2, 3]);
    expect(found("batch=8")).toEqual([0, 3]);
    expect(found("remat=full")).toEqual([3]);
    expect(found("donate")).toEqual([3]);
    expect(found("not fit")).toEqual([2]);
    expect(found("ValueError")).toEqual([3]);
  });

  it("is sorted with unknown values last", () => {
    const sorted = (key: string, descending = false): number[] =>
      sortedBy(columns, candidates, key, descending).map((row) => candidates.indexOf(row));
    expect(sorted("reserved")).toEqual([0, 1, 2, 3]);
    expect(sorted("reserved", true)).toEqual([2, 1, 0, 3]);
    expect(sorted("knob:batch", true)).toEqual([2, 1, 0, 3]);
    expect(sorted("fits", true)).toEqual([3, 2, 1, 0]);
  });

  it("is saved with figures in bytes", () => {
    const [headings, , second, , last] = savedLines(columns, candidates);
    expect(headings).toBe(
      "target,batch,remat,changes,fits,reserved_bytes,peak_bytes,limit_bytes,left_bytes,rematerialized," +
        "rematerialized_flops,step_seconds,utilization,items_per_second,seconds,error,run",
    );
    expect(second).toBe(
      "v5e:2x2,52,none,,true,12884901888,12884901888,17179869184,4294967296,7,0,,0,,2,,run 52 0",
    );
    expect(last).toBe("v5e:2x2,8,full,donate state,false,,,17179869184,,0,0,,0,,2,ValueError: no,run 8 1");
  });
});

describe("the table of largest values", () => {
  const lines = largestLines(step);
  const columns = largestColumns(step);

  it("has a line for each choice, also where none fits", () => {
    const values = (key: string) =>
      lines.map((line) => columns.find((each) => each.key === key)?.value(line));
    expect(values("knob:batch")).toEqual([52, null]);
    expect(values("without")).toEqual([8, null]);
    expect(values("knob:remat")).toEqual(["none", "full"]);
  });

  it("states where the largest value is the end of the range", () => {
    expect(lines.map(({ isEnd }) => isEnd)).toEqual([false, false]);
    expect(largestLines(fitStep(candidates.slice(0, 2))).map(({ isEnd }) => isEnd)).toEqual([true]);
  });

  it("is saved", () => {
    expect(savedLines(columns, lines)).toEqual([
      "target,remat,changes,largest_batch,reserved_bytes,left_bytes,without_recomputation,recomputed,bound_by,run",
      'v5e:2x2,none,,52,12884901888,4294967296,8,7,"activation 75%, parameter 25%",run 52 0',
      "v5e:2x2,full,donate state,,,,,,,",
    ]);
  });
});
