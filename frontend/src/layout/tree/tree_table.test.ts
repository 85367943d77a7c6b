import { describe, expect, it } from "vitest";
import { compileSearch } from "../../base/search";
import { fixtureRows } from "../../payload/recording/fixture";
import { fixtureForest } from "../../payload/responses/fixture";
import { buildTree, findNode, labelOf, searchTree } from "./tree";
import { treeCsv, treeLines, type TreeSort } from "./tree_table";
import { weighTree } from "./weights";

const rows = fixtureRows([{ size: 10 }, { size: 40 }, { size: 30 }, { size: 5 }, { size: 1 }]);
const tree = buildTree(
  fixtureForest([
    ["layer_10", "mlp", "w"],
    ["layer_9", "mlp", "w"],
    ["layer_9", "attention", "q,k"],
    ["layer_9"],
    ["main", "run", "step", "loss"],
  ]),
  rows,
  { none: "none", rest: "rest" },
  false,
);
const weights = weighTree(tree, rows, Uint32Array.of(0, 1, 2, 3, 4), rows.charge, 0);
const LARGEST: TreeSort = { key: "total", descending: true };

function lines(sort: TreeSort, toggled: string[] = [], search = "", top = ""): string[] {
  const { matching } = searchTree(tree, weights.total, compileSearch(search), {
    rows,
    live: Uint32Array.of(0, 1, 2, 3, 4),
    column: rows.charge,
    rest: 0,
  });
  const nodes = new Set(toggled.map((path) => findNode(tree, path)));
  return treeLines(tree, weights, findNode(tree, top), sort, nodes, matching).map(
    ({ node, level, expanded }) =>
      `${"  ".repeat(level)}${expanded === null ? "" : expanded ? "-" : "+"}${labelOf(tree, node)}`,
  );
}

describe("the lines of a tree", () => {
  it("expand the first levels, and nodes without siblings", () => {
    expect(lines(LARGEST)).toEqual([
      "-everything",
      "  -layer_9",
      "    +mlp",
      "    +attention",
      "  -layer_10",
      "    -mlp",
      "      w",
      "  -main",
      "    -run",
      "      -step",
      "        loss",
    ]);
  });

  it("expand and collapse", () => {
    expect(lines(LARGEST, ["layer_9", "layer_9/mlp", "layer_10", "main"])).toEqual([
      "-everything",
      "  +layer_9",
      "  +layer_10",
      "  +main",
    ]);
    expect(lines(LARGEST, ["layer_9/mlp"])).toContain("      w");
  });

  it("are sorted among siblings, numerically", () => {
    const levels = (sort: TreeSort): string[] => lines(sort, ["layer_9", "layer_10", "main"]).slice(1);
    expect(levels({ key: "name", descending: false })).toEqual(["  +layer_9", "  +layer_10", "  +main"]);
    expect(levels({ key: "total", descending: false })).toEqual(["  +main", "  +layer_10", "  +layer_9"]);
    expect(levels({ key: "count", descending: true })).toEqual(["  +layer_9", "  +layer_10", "  +main"]);
  });

  it("lead to the matches of a search and hide the rest", () => {
    expect(lines(LARGEST, [], "mlp")).toEqual([
      "-everything",
      "  -layer_9",
      "    +mlp",
      "  -layer_10",
      "    +mlp",
    ]);
    expect(lines(LARGEST, ["layer_9/mlp"], "mlp")).toContain("      w");
  });

  it("start at the zoomed node", () => {
    expect(lines(LARGEST, [], "", "layer_9")).toEqual([
      "-layer_9",
      "  -mlp",
      "    w",
      "  -attention",
      "    q,k",
    ]);
  });
});

describe("a tree as CSV", () => {
  it("contains every node with a weight, expanded or not", () => {
    const [head, ...body] = treeCsv(tree, weights, 0, "bytes").trimEnd().split("\r\n");
    expect(head).toBe("path,depth,total_bytes,self_bytes,rows,merged");
    expect(body).toContain("layer_9,1,75,5,3,1");
    expect(body).toContain('"layer_9/attention/q,k",3,30,30,1,1');
    expect(body).toHaveLength(13);
  });
});
