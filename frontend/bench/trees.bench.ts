import { bench, describe } from "vitest";
import { flame } from "../src/layout/tree/flame";
import { invert } from "../src/layout/tree/sandwich";
import { emptyTree, type Tree } from "../src/layout/tree/tree";
import { treemap } from "../src/layout/tree/treemap";
import { weighTree } from "../src/layout/tree/weights";
import { liveAt } from "../src/layout/usage/live_set";
import type { Rows } from "../src/payload/recording/rows";

/** A model of `layers` layers with 10 parts of 10 ops each, and one row for each op, a third of them live. */
function model(layers: number, count: number): { tree: Tree; rows: Rows } {
  const tree = emptyTree(2 + layers * 111);
  const ops: number[] = [];
  let node = 1;
  tree.end[0] = tree.length;
  const put = (parent: number, depth: number): number => {
    tree.parent[node] = parent;
    tree.depth[node] = depth;
    tree.name[node] = node % 1000;
    tree.end[node] = node + 1;
    for (let at = parent; at >= 0; at = tree.parent[at]) tree.end[at] = Math.max(tree.end[at], node + 1);
    return node++;
  };
  for (let layer = 0; layer < layers; layer++) {
    const top = put(0, 1);
    for (let part = 0; part < 10; part++) {
      const middle = put(top, 2);
      for (let op = 0; op < 10; op++) ops.push(put(middle, 3));
    }
  }
  const rest = put(0, 1);
  const rows = {
    length: count,
    charge: Float64Array.from({ length: count }, (_, row) => 1 + ((row * 7919) % 65536)),
    start: Int32Array.from({ length: count }, (_, row) => row % 1000),
    end: Int32Array.from({ length: count }, (_, row) => (row % 1000) + 333),
    role: Uint8Array.from({ length: count }, (_, row) => 1 + (row % 6)),
  } as unknown as Rows;
  const leaf = Int32Array.from({ length: count }, (_, row) => ops[row % ops.length]);
  return { tree: { ...tree, leaf, names: 1000, text: String, rest }, rows };
}

const { tree, rows } = model(450, 500_000);
const live = liveAt(rows, 500);
const { total } = weighTree(tree, rows, live, rows.charge, 0);

describe(`${rows.length} rows, ${tree.length} nodes`, () => {
  bench("live set", () => void liveAt(rows, 500));
  bench("weigh", () => void weighTree(tree, rows, live, rows.charge, 0));
  bench("flame graph, 1900 px", () => void flame(tree, total, 0, 1900));
  bench("treemap, 1900 px", () => void treemap(tree, total, 0, 1900, 460));
  bench("bottom-up, once", () => void invert(tree));
});
