import { describe, expect, it } from "vitest";
import { compileSearch } from "../../base/search";
import { fitCandidate, fitStep } from "../../payload/responses/fit_fixture";
import { boundBy, candidatesCsv, candidateValue, filterCandidates } from "./fit_table";
import { largestCsv, largestLines, largestValue, sortBy } from "./fit_table";

const step = fitStep([
  fitCandidate(8, 4),
  fitCandidate(52, 12, { rematerialized: 7 }),
  fitCandidate(60, 18),
  fitCandidate(8, null, {
    choice: 1,
    knobs: { remat: "full" },
    changes: ["donate:state"],
    change: "donate state",
  }),
]);
const { candidates } = step;

describe("the table of candidates", () => {
  const filtered = (search: string, size = ""): number[] =>
    filterCandidates(candidates, "batch", compileSearch(search), size).rows.map((row) =>
      candidates.indexOf(row),
    );

  it("is searched by target, knobs, changes, outcome and error", () => {
    expect(filtered("v5e")).toEqual([0, 1, 2, 3]);
    expect(filtered("batch=8")).toEqual([0, 3]);
    expect(filtered("remat=full")).toEqual([3]);
    expect(filtered("donate")).toEqual([3]);
    expect(filtered("not fit")).toEqual([2]);
    expect(filtered("ValueError")).toEqual([3]);
    expect(filtered("", ">10GiB")).toEqual([1, 2]);
    expect(filterCandidates(candidates, "batch", compileSearch("["), "x").errors).toHaveLength(2);
  });

  it("is sorted with unknown values last", () => {
    const sorted = (key: "reserved" | "knob:batch" | "fits", descending = false): number[] =>
      sortBy(candidates, { key, descending }, (row, by) => candidateValue(row, by, "batch")).map((row) =>
        candidates.indexOf(row),
      );
    expect(sorted("reserved")).toEqual([0, 1, 2, 3]);
    expect(sorted("reserved", true)).toEqual([2, 1, 0, 3]);
    expect(sorted("knob:batch", true)).toEqual([2, 1, 0, 3]);
    expect(sorted("fits", true)).toEqual([3, 2, 1, 0]);
  });

  it("is saved with figures in bytes", () => {
    const [headings, , second, , last] = candidatesCsv(step, candidates).split("\r\n");
    expect(headings).toBe(
      "target,batch,remat,changes,fits,reserved_bytes,peak_bytes,limit_bytes,left_bytes,rematerialized," +
        "rematerialized_flops,seconds,error,run",
    );
    expect(second).toBe(
      "v5e:2x2,52,none,,true,12884901888,12884901888,17179869184,4294967296,7,0,2,,run 52 0",
    );
    expect(last).toBe("v5e:2x2,8,full,donate state,false,,,17179869184,,0,0,2,ValueError: no,run 8 1");
  });
});

describe("the table of largest values", () => {
  const lines = largestLines(step);

  it("has a line for each choice, also where none fits", () => {
    expect(lines.map(({ largest, without }) => [largest?.value, without?.value])).toEqual([
      [52, 8],
      [undefined, undefined],
    ]);
    expect(lines.map((line) => largestValue(line, "knob:batch", "batch"))).toEqual([52, null]);
    expect(lines.map((line) => largestValue(line, "without", "batch"))).toEqual([8, null]);
    expect(lines.map((line) => largestValue(line, "knob:remat", "batch"))).toEqual(["none", "full"]);
  });

  it("is saved", () => {
    expect(largestCsv(step, lines).split("\r\n").slice(1, 3)).toEqual([
      'v5e:2x2,none,,52,12884901888,4294967296,8,7,"activation 75%, parameter 25%",run 52 0',
      "v5e:2x2,full,donate state,,,,,,,",
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
