import { describe, expect, it } from "vitest";
import { fixtureRows } from "../../payload/recording/fixture";
import { momentColumns } from "./columns";

const keys = (rows: Parameters<typeof fixtureRows>[0]): string[] =>
  momentColumns(fixtureRows(rows)).map(({ key }) => key);

describe("momentColumns", () => {
  it("are those that say anything", () => {
    expect(keys([{ name: "chunk", size: 10, role: 0 }])).toEqual(["name", "size"]);
    expect(keys([{ name: "a", size: 10, unpadded: 4, role: 1, shape: "f32[1]", op: "copy" }])).toEqual([
      "name",
      "role",
      "size",
      "unpadded",
      "expansion",
      "shape",
      "op",
    ]);
  });
});
