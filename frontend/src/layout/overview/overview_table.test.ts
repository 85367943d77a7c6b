import { describe, expect, it } from "vitest";
import { compileSearch } from "../../base/search";
import type { OverviewRow } from "../../payload/generated/answers";
import type { TopAdvice } from "../../payload/responses/overview";
import { recordingName, partText } from "../../payload/responses/overview";
import { overviewRow } from "./row_fixture";
import { filterOverview, overviewCsv, sortOverview } from "./overview_table";

const row = overviewRow;

const NOTHING = new Map<string, TopAdvice | null>();
const train = row("jit_train(1)", {
  peak_bytes: 5000,
  capacity_bytes: 8000,
  headroom_bytes: 3000,
  role: { role: 8, bytes: 4000, share: 0.8 },
  part: { name: "layer_*", repeats: 48, bytes: 2000, share: 0.4 },
});
const gpu2 = row("b", {
  kind: "allocator",
  axis: "TIME",
  title: "allocator",
  memory: "GPU_2_bfc",
  headroom_bytes: -5,
});
const gpu10 = row("a", { kind: "allocator", axis: "TIME", title: "allocator", memory: "GPU_10_bfc" });
const ids = (rows: readonly OverviewRow[]): string[] => rows.map(({ id }) => id);

describe("the overview table", () => {
  it("names the largest part", () => {
    expect([recordingName(train), recordingName(gpu2)]).toEqual(["jit_train(1)", "GPU_2_bfc"]);
    expect([partText(train), partText(gpu2)]).toEqual(["layer_* ×48", ""]);
    const named = (name: string): string =>
      partText(row("x", { part: { name, repeats: 3, bytes: 1, share: 1 } }));
    expect(named("mlp")).toBe("mlp");
    expect(named("main.<locals>.f.<locals>.step (work/users/me/train.py:29)")).toBe("step (train.py:29)");
    expect(named("train.py:61")).toBe("train.py:61");
    expect(named("bsd,de->bse")).toBe("bsd,de->bse");
  });

  it("keeps the given order until a column is selected", () => {
    expect(ids(sortOverview([gpu2, train, gpu10], null, NOTHING))).toEqual(["b", "jit_train(1)", "a"]);
  });

  it("sorts numerically, with unknown values last in both directions", () => {
    const rows = [gpu10, train, gpu2];
    expect(ids(sortOverview(rows, { key: "name", descending: false }, NOTHING))).toEqual([
      "b",
      "a",
      "jit_train(1)",
    ]);
    expect(ids(sortOverview(rows, { key: "left", descending: false }, NOTHING))).toEqual([
      "b",
      "jit_train(1)",
      "a",
    ]);
    expect(ids(sortOverview(rows, { key: "left", descending: true }, NOTHING))).toEqual([
      "jit_train(1)",
      "b",
      "a",
    ]);
    const advice = new Map([["a", { title: "t", sentence: "s", saving_bytes: 9 }]]);
    expect(ids(sortOverview(rows, { key: "advice", descending: true }, advice))[0]).toBe("a");
  });

  it("finds text in any column, and sizes of peaks", () => {
    const rows = [train, gpu2, gpu10];
    const advice = new Map([["a", { title: "Donate", sentence: "", saving_bytes: 9 }]]);
    const found = (search: string, size = ""): string[] =>
      ids(filterOverview(rows, compileSearch(search), size, advice).rows);
    expect(found("")).toHaveLength(3);
    expect(found("gpu_\\d+")).toEqual(["b", "a"]);
    expect(found("temporary")).toEqual(["jit_train(1)"]);
    expect(found("layer_*")).toEqual(["jit_train(1)"]);
    expect(found("donate")).toEqual(["a"]);
    expect(found("", ">1KiB")).toEqual(["jit_train(1)"]);
    expect(filterOverview(rows, compileSearch("("), "much", NOTHING).errors).toHaveLength(2);
  });

  it("exports unknown values as empty cells, and no formulas", () => {
    const advice = new Map([[train.id, { title: "=1+1", sentence: "", saving_bytes: 7 }]]);
    const lines = overviewCsv([train, gpu10], advice).split("\r\n");
    expect(lines[0]).toContain("capacity_bytes,left_bytes,largest_category");
    expect(lines[1]).toBe(
      "jit_train(1),HBM,host,program,5000,100,8000,3000,temporary,4000,layer_*,2000,'=1+1,7",
    );
    expect(lines[2]).toBe("allocator,GPU_10_bfc,host,allocator,100,100,,,,,,,,");
  });
});
