import { describe, expect, it } from "vitest";
import { overviewRow } from "../../layout/fixture";
import { fieldTexts } from "../../layout/table/fields";
import type { OverviewRow } from "../../payload/generated/answers";
import { makeAdvice, makeAdviceList } from "../../payload/responses/fixture";
import type { AdviceById } from "../../payload/responses/names";
import { savedLines, sortedBy } from "../tables/fixture";
import { overviewColumns } from "./recordings_table";

const train = overviewRow("jit_train(1)", {
  peak_bytes: 5000,
  capacity_bytes: 8000,
  headroom_bytes: 3000,
  role: { role: 8, bytes: 4000, share: 0.8 },
  part: { name: "layer_*", repeats: 48, bytes: 2000, share: 0.4 },
});
const ALLOCATOR = { kind: "allocator", axis: "TIME", title: "allocator" } as const;
const gpu2 = overviewRow("b", { ...ALLOCATOR, memory: "GPU_2_bfc", headroom_bytes: -5, capacity_bytes: 95 });
const gpu10 = overviewRow("a", { ...ALLOCATOR, memory: "GPU_10_bfc" });
const ROWS = [gpu10, train, gpu2];
const ADVICE: AdviceById = new Map([["a", makeAdviceList([makeAdvice("=donate", { saving_bytes: 9 })])]]);

const columns = overviewColumns(ROWS, ADVICE, () => undefined, false);
const sorted = (key: string, descending = false): string[] =>
  sortedBy(columns, ROWS, key, descending).map(({ id }: OverviewRow) => id);

describe("the overview table", () => {
  it("sorts numerically, with unknown values last in both directions", () => {
    expect(sorted("name")).toEqual(["b", "a", "jit_train(1)"]);
    expect(sorted("used")).toEqual(["jit_train(1)", "b", "a"]);
    expect(sorted("used", true)).toEqual(["b", "jit_train(1)", "a"]);
    expect(sorted("advice", true)[0]).toBe("a");
  });

  it("is searched for recordings, memories, roles, parts and advice", () => {
    expect(fieldTexts(columns, train)).toEqual(
      expect.arrayContaining(["jit_train(1)", "HBM", "host", "temporary", "layer_*"]),
    );
    expect(fieldTexts(columns, gpu10)).toContain("=donate");
  });

  it("exports unknown values as empty cells, and no formulas", () => {
    const [headings, ...lines] = savedLines(columns, ROWS);
    expect(headings).toBe(
      "recording,memory,host,kind,peak_bytes,needed_bytes,capacity_bytes,left_bytes,largest_role," +
        "largest_role_bytes,largest_part,largest_part_bytes,leak,advice,saving_bytes",
    );
    expect(lines.slice(0, 2)).toEqual([
      "allocator,GPU_10_bfc,host,allocator,100,100,,,,,,,,'=donate,9",
      "jit_train(1),HBM,host,program,5000,100,8000,3000,temporary,4000,layer_*,2000,,,",
    ]);
  });

  it("leaves out what all rows have in common, and figures that no row has", () => {
    const shown = (rows: OverviewRow[]): (string | null | undefined)[] =>
      ["memory", "host", "used", "role"].map(
        (key) =>
          overviewColumns(rows, ADVICE, () => undefined, false).find((each) => each.key === key)?.constant,
      );
    expect(shown([gpu10])).toEqual([null, "", "", ""]);
    expect(shown([gpu10, gpu10])).toEqual(["GPU_10_bfc", "host", "", ""]);
    expect(shown([gpu10, { ...train, host: "other" }])).toEqual([null, null, null, null]);
  });
});
