import { describe, expect, it } from "vitest";
import { functionTotals, sandwich } from "./sandwich";
import { emptyTree, labelOf, shortFrame, functionOf, type Tree } from "./tree";
import { flame, FLAME_LINE_HEIGHT, levelsBelow, rootFolds } from "./flame";

/** Return a tree of paths, with a row of the given weight at the end of each. */
function treeOf(paths: readonly (readonly [string, number])[]) {
  const labels = ["everything"];
  const parent = [-1];
  const leaf = paths.map(([path]) =>
    path.split(">").reduce((at, label) => {
      const found = labels.findIndex((known, node) => known === label && parent[node] === at);
      if (found >= 0) return found;
      parent.push(at);
      return labels.push(label) - 1;
    }, 0),
  );
  // The paths are in preorder.
  const columns = emptyTree(labels.length);
  columns.parent.set(parent);
  const names = [...new Set(labels)];
  labels.forEach((label, node) => (columns.name[node] = names.indexOf(label)));
  for (let node = labels.length - 1; node >= 0; node--) {
    columns.end[node] = Math.max(columns.end[node], node + 1);
    if (node > 0) columns.end[parent[node]] = Math.max(columns.end[parent[node]], columns.end[node]);
  }
  for (let node = 1; node < labels.length; node++) columns.depth[node] = columns.depth[parent[node]] + 1;
  const tree: Tree = {
    ...columns,
    leaf: Int32Array.from(leaf),
    rest: 0,
    names: names.length,
    text: (name) => names[name],
  };
  return {
    tree,
    weights: weigh(
      tree,
      paths.map(([, weight]) => weight),
    ),
  };
}

function weigh(tree: Tree, rows: readonly number[]) {
  const self = new Float64Array(tree.length);
  const count = new Int32Array(tree.length);
  tree.leaf.forEach((node, row) => {
    self[node] += rows[row];
    if (rows[row] > 0) count[node] += 1;
  });
  const total = self.slice();
  for (let node = tree.length - 1; node > 0; node--) {
    total[tree.parent[node]] += total[node];
    count[tree.parent[node]] += count[node];
  }
  return { total, self, count, role: new Uint8Array(tree.length) };
}

const lines = (tree: Tree, total: Float64Array): string[] =>
  Array.from({ length: tree.length }, (_, node) => node)
    .filter((node) => total[node] > 0)
    .map((node) => `${" ".repeat(tree.depth[node])}${labelOf(tree, node)} ${total[node]}`);

const ROWS = [
  ["main (a.py:1)>f (a.py:5)>g (b.py:7)", 10],
  ["main (a.py:1)>f (a.py:5)>g (b.py:7)>f (a.py:6)>h", 5],
  ["main (a.py:2)>g (b.py:8)", 3],
  ["other", 2],
] as const;

describe("a sandwich", () => {
  const { tree, weights } = treeOf(ROWS);

  it("counts each row of a function once, at all of its lines, also where it calls itself", () => {
    const totals = functionTotals(tree, weights).map(({ label, total, self, count }) => [
      label,
      total,
      self,
      count,
    ]);
    expect(totals).toEqual([
      ["g (b.py)", 18, 13, 3],
      ["main (a.py)", 18, 0, 3],
      ["f (a.py)", 15, 0, 2],
      ["h", 5, 5, 1],
      ["other", 2, 2, 1],
    ]);
  });

  it("has the callers above and the callees below, which add up to the same", () => {
    const found = sandwich(tree, "g (b.py)");
    if (found === null) throw new Error("not found");
    const inside = ROWS.map(([, weight], row) => (found.rows[row] === 1 ? weight : 0));
    expect([...found.rows]).toEqual([1, 1, 1, 0]);
    expect(lines(found.callees, weigh(found.callees, inside).total)).toEqual([
      "g (b.py) 18",
      " f (a.py:6) 5",
      "  h 5",
    ]);
    expect(lines(found.callers, weigh(found.callers, inside).total)).toEqual([
      "g (b.py) 18",
      " f (a.py:5) 15",
      "  main (a.py:1) 15",
      " main (a.py:2) 3",
    ]);
    expect(sandwich(tree, "none")).toBeNull();
  });
});

describe("frames", () => {
  it("are shown with file and line first", () => {
    expect(shortFrame("layer (src/nn/model.py:20)")).toBe("model.py:20 layer");
    expect(shortFrame("adam.<locals>.<lambda> (C:\\src\\opt.py:3)")).toBe("opt.py:3 adam.<locals>.<lambda>");
    expect(shortFrame("/home/u/train.py:86")).toBe("train.py:86");
    for (const kept of ["bqhd,bkhd->bhqk", "params", "f32[2,3]", "a/b", "no stack", "x (y)", "dot_general"])
      expect(shortFrame(kept)).toBe(kept);
    expect(functionOf("layer (src/model.py:20)")).toBe("layer (src/model.py)");
    expect(functionOf("train.py:86")).toBe("train.py:86");
  });
});

describe("common root frames", () => {
  const { tree, weights } = treeOf([
    ["a>b>c>d>e", 4],
    ["a>b>c>d>f", 2],
    ["none", 1],
  ]);

  it("are one line, up to the frame where the paths part", () => {
    const folds = rootFolds(tree, weights.total);
    expect([...folds].map(([first, last]) => [labelOf(tree, first), labelOf(tree, last)])).toEqual([
      ["a", "c"],
    ]);
    const boxes = flame(tree, weights.total, 0, 700, folds);
    expect(boxes.map(({ node, folded, y }) => [labelOf(tree, node), folded, y / FLAME_LINE_HEIGHT])).toEqual([
      ["everything", 0, 0],
      ["c", 3, 1],
      ["d", 0, 2],
      ["e", 0, 3],
      ["f", 0, 3],
      ["none", 0, 1],
    ]);
    expect(levelsBelow(tree, weights.total, 0, folds)).toBe(4);
    expect(levelsBelow(tree, weights.total, 0)).toBe(6);
  });

  it("are not folded where there is nothing to gain", () => {
    const short = treeOf([
      ["a>b>c", 4],
      ["a>b>d", 2],
    ]);
    expect(rootFolds(short.tree, short.weights.total).size).toBe(0);
  });
});
