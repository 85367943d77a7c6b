import { describe, expect, it } from "vitest";
import { compileSearch } from "../../base/search";
import { fixtureRows } from "../../payload/recording/fixture";
import type { Program } from "../../payload/recording/recording";
import { fixtureForest } from "../../payload/responses/fixture";
import { filterRows } from "../table/table_filter";
import { liveAt } from "../usage/live_set";
import { invert } from "./sandwich";
import {
  buildTree,
  childrenOf,
  findNode,
  labelOf,
  pathNodes,
  pathOf,
  rowsBelow,
  rowsBelowMatches,
  searchTree,
  type Tree,
  type TreeMatches,
} from "./tree";
import { byteTime, weighTree } from "./weights";

const PATHS = [
  ["params", "layer_0", "w"],
  ["params", "layer_0", "b"],
  ["params", "layer_1", "w"],
  ["step", "jax.jit", "w"],
  [],
  ["params"],
];
const rows = fixtureRows([
  { size: 100, role: 1 },
  { size: 10, role: 1 },
  { size: 100, role: 1, start: 5 },
  { size: 60, role: 5 },
  { size: 7, role: 0 },
  { size: 3, role: 2, start: -1 },
]);
const UNSAID = { none: "no model path", rest: "not explained" };
const tree = buildTree(fixtureForest(PATHS), rows, UNSAID, false);
const at = (path: string, within: Tree = tree): number => findNode(within, path);

describe("buildTree", () => {
  it("has a root, and nodes for rows without a path", () => {
    expect(childrenOf(tree, 0).map((node) => labelOf(tree, node))).toEqual([
      "params",
      "step",
      "no model path",
      "live before the recording",
      "not explained",
    ]);
    expect([...tree.leaf].map((node) => pathOf(tree, node))).toEqual([
      "params/layer_0/w",
      "params/layer_0/b",
      "params/layer_1/w",
      "step/jax.jit/w",
      "no model path",
      "params",
    ]);
    expect(pathNodes(tree, at("params/layer_0/w")).map((node) => tree.depth[node])).toEqual([1, 2, 3]);
  });

  it("separates allocations older than the recording", () => {
    const pathless = buildTree(
      fixtureForest(PATHS.map(() => [])),
      rows,
      { ...UNSAID, none: "no stack" },
      true,
    );
    expect([...pathless.leaf].map((node) => labelOf(pathless, node))).toEqual([
      ...Array<string>(5).fill("no stack"),
      "live before the recording",
    ]);
  });

  it("finds a path whose labels contain the separator", () => {
    const slashes = buildTree(
      fixtureForest([["a", "b", "c"], ["a/b", "d"], ["a\\", "/"], ["a"]]),
      rows,
      UNSAID,
      false,
    );
    for (let node = 0; node < slashes.length; node++) expect(at(pathOf(slashes, node), slashes)).toBe(node);
    expect(at("a/b/x", slashes)).toBe(-1);
    expect(at("", slashes)).toBe(0);
  });

  it("marks the rows below a node", () => {
    expect([...rowsBelow(tree, at("params"))]).toEqual([1, 1, 1, 0, 0, 1]);
    expect([...rowsBelow(tree, at("params/layer_0/b"))]).toEqual([0, 1, 0, 0, 0, 0]);
    expect([...rowsBelow(tree, 0)]).toEqual([1, 1, 1, 1, 1, 1]);
  });
});

describe("weighTree", () => {
  const weights = (position: number, rest: number) =>
    weighTree(tree, rows, liveAt(rows, position), rows.charge, rest);

  it("sums live rows and unexplained bytes up to the root", () => {
    const { total, self, count, role } = weights(5, 20);
    const of = (path: string): number[] => [total[at(path)], self[at(path)], count[at(path)], role[at(path)]];
    expect(of("params/layer_0")).toEqual([110, 0, 2, 1]);
    expect(of("params")).toEqual([213, 3, 4, 1]);
    expect(of("step")).toEqual([60, 0, 1, 5]);
    expect(of("not explained")).toEqual([20, 20, 0, 0]);
    expect(of("")).toEqual([300, 0, 6, 1]);
  });

  it("leaves out rows that are not live", () => {
    const { total, count } = weights(4, 0);
    expect([total[at("params/layer_1")], total[0], count[0]]).toEqual([0, 180, 5]);
  });

  it("multiplies by positions, or by time if there is a clock", () => {
    const program = { length: 10, time_ns: null } as Program;
    expect([...byteTime(rows, program)]).toEqual([1000, 100, 500, 600, 70, 30]);
    const clock = Float64Array.from({ length: 11 }, (_, position) => position * 100);
    expect([...byteTime(rows, { ...program, time_ns: clock })].slice(2, 4)).toEqual([100 * 500, 60 * 1000]);
  });

  it("visits each row and each node a fixed number of times", () => {
    // With a thousand times the rows over the same nodes, reads of the tree's columns must not grow with the
    // rows.
    let reads = 0;
    const counting = (few: number): number => {
      reads = 0;
      const many = { ...rows, length: few };
      const watched = new Proxy(tree.parent, {
        get: (target, key) => {
          if (typeof key === "string" && /^\d+$/.test(key)) reads += 1;
          const value: unknown = Reflect.get(target, key);
          return value;
        },
      });
      weighTree({ ...tree, parent: watched }, many, liveAt(rows, 5), rows.charge, 0);
      return reads;
    };
    expect(counting(6)).toBe(counting(6000));
    expect(reads).toBeLessThan(6 * tree.length);
  });
});

describe("invert", () => {
  const up = invert(tree);
  const { total } = weighTree(up, rows, liveAt(rows, 5), rows.charge, 20);

  it("starts with the nodes that rows belong to, and continues to their callers", () => {
    const tops = childrenOf(up, 0).map((node) => [labelOf(up, node), total[node]]);
    expect(Object.fromEntries(tops)).toEqual({
      w: 260,
      b: 10,
      params: 3,
      "no model path": 7,
      "not explained": 20,
    });
    expect(total[at("w/layer_0", up)]).toBe(100);
    expect(total[at("w/jax.jit/step", up)]).toBe(60);
    expect(total[0]).toBe(300);
  });

  it("is in preorder", () => {
    for (let node = 1; node < up.length; node++) {
      expect(up.parent[node]).toBeLessThan(node);
      expect(up.end[up.parent[node]]).toBeGreaterThanOrEqual(up.end[node]);
      expect(up.depth[node]).toBe(up.depth[up.parent[node]] + 1);
    }
    expect(up.framework[at("w/jax.jit", up)]).toBe(1);
  });

  it("counts recursive paths once", () => {
    const recursive = invert(buildTree(fixtureForest([["f", "g", "f"], ["f"]]), rows, UNSAID, false));
    const weights = weighTree(recursive, rows, Uint32Array.of(0, 1), rows.charge, 0);
    expect(weights.total[at("f", recursive)]).toBe(110);
    expect(weights.total[at("f/g/f", recursive)]).toBe(100);
    expect(weights.total[0]).toBe(110);
  });
});

describe("searchTree", () => {
  const live = liveAt(rows, 5);
  const { total } = weighTree(tree, rows, live, rows.charge, 0);
  const find = (text: string): TreeMatches =>
    searchTree(tree, total, compileSearch(text), { rows, live, column: rows.charge, rest: 0 });

  it("counts nested matches once", () => {
    expect(find("layer|w")).toMatchObject({ nodes: 5, weight: 270 });
    expect(find("LAYER_0")).toMatchObject({ nodes: 1, weight: 110 });
    expect(find("nothing")).toMatchObject({ nodes: 0, weight: 0 });
  });

  it("finds the same rows as the table, by their own texts and by the labels above them", () => {
    const named = fixtureRows([
      { size: 100, op_name: "jit(step)/mlp/dot" },
      { size: 32, name: "copy.1" },
      { size: 8, source: "mlp (model.py:7)" },
      { size: 1, name: "copy.2" },
    ]);
    const paths = [["forward", "mlp", "dot"], ["copies", "mlp"], ["forward", "dot"], ["copies"]];
    const named_tree = buildTree(fixtureForest(paths), named, UNSAID, false);
    const all = liveAt(named, 5);
    const weights = weighTree(named_tree, named, all, named.charge, 0);
    const search = compileSearch("mlp");
    const weighed = { rows: named, live: all, column: named.charge, rest: 0 };
    const found = searchTree(named_tree, weights.total, search, weighed);
    const listed = filterRows(named, all, search, "", rowsBelowMatches(named_tree, search));
    expect([...listed.rows]).toEqual([0, 1, 2]);
    expect(found.weight).toBe(140);
    expect(found.highlighted?.[findNode(named_tree, "forward/dot")]).toBe(1);
  });

  it("highlights matches and their descendants", () => {
    const { matching, highlighted } = find("layer_0");
    const [layer, weight, other] = [at("params/layer_0"), at("params/layer_0/w"), at("params/layer_1")];
    expect([layer, weight, other, 0].map((node) => matching?.[node])).toEqual([1, 0, 0, 0]);
    expect([layer, weight, other, 0].map((node) => highlighted?.[node])).toEqual([1, 1, 0, 0]);
  });

  it("marks nothing without a search, and no nodes without weight", () => {
    expect(find("").matching).toBeNull();
    expect(find("live before").nodes).toBe(0);
  });
});
