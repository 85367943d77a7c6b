import { describe, expect, it } from "vitest";
import { fixtureRows } from "../../payload/recording/fixture";
import { fixtureForest } from "../../payload/responses/fixture";
import { boxAt, flame, FLAME_LINE_HEIGHT, levelsBelow, MAX_LEVELS } from "./flame";
import { buildTree, findNode, pathOf, type Tree } from "./tree";
import { HEADING_HEIGHT, squarify, treemap } from "./treemap";
import { weighTree } from "./weights";

function weightedTree(sizes: [string, number][]): { tree: Tree; total: Float64Array } {
  const rows = fixtureRows(sizes.map(([, size]) => ({ size })));
  const paths = sizes.map(([path]) => path.split("/").filter(Boolean));
  const tree = buildTree(fixtureForest(paths), rows, { none: "none", rest: "rest" }, false);
  const live = Uint32Array.from(sizes, (_, row) => row);
  return { tree, total: weighTree(tree, rows, live, rows.charge, 0).total };
}

const { tree, total } = weightedTree([
  ["a/x", 10],
  ["b/y", 60],
  ["b/z", 20],
  ["b", 10],
]);

describe("flame", () => {
  it("makes widths proportional to weights, largest first, one line for each level", () => {
    const drawn = flame(tree, total, 0, 1000).map((box) => [pathOf(tree, box.node), box.x, box.width, box.y]);
    expect(drawn).toEqual([
      ["", 0, 1000, 0],
      ["b", 0, 900, FLAME_LINE_HEIGHT],
      ["b/y", 0, 600, 2 * FLAME_LINE_HEIGHT],
      ["b/z", 600, 200, 2 * FLAME_LINE_HEIGHT],
      ["a", 900, 100, FLAME_LINE_HEIGHT],
      ["a/x", 900, 100, 2 * FLAME_LINE_HEIGHT],
    ]);
  });

  it("shows the subtree of the zoomed node", () => {
    const top = findNode(tree, "b");
    const [first, second] = flame(tree, total, top, 900);
    expect([first.node, first.width, second.width]).toEqual([top, 900, 600]);
    expect(levelsBelow(tree, total, top)).toBe(2);
    expect(levelsBelow(tree, total, 0)).toBe(3);
    expect(levelsBelow(tree, new Float64Array(tree.length), 0)).toBe(1);
  });

  it("gathers narrow nodes into one box with their number", () => {
    const many = weightedTree([
      ["big", 900],
      ...Array.from({ length: 100 }, (_, i): [string, number] => [`s${i}`, 1]),
    ]);
    const [, big, rest, ...more] = flame(many.tree, many.total, 0, 1000);
    expect([big.x, big.width, big.gathered]).toEqual([0, 900, 0]);
    expect([rest.node, rest.gathered, rest.x, Math.round(rest.width)]).toEqual([0, 100, 900, 100]);
    expect(more).toEqual([]);
  });

  it("is empty without weights", () => {
    expect(flame(tree, new Float64Array(tree.length), 0, 1000)).toEqual([]);
  });

  it("ends at the deepest level that a canvas has room for", () => {
    const deep = weightedTree([[Array.from({ length: 500 }, (_, i) => `f${i}`).join("/"), 1]]);
    expect(flame(deep.tree, deep.total, 0, 100)).toHaveLength(MAX_LEVELS);
    expect(levelsBelow(deep.tree, deep.total, 0)).toBe(MAX_LEVELS);
  });

  it("finds the box at a point", () => {
    const boxes = flame(tree, total, 0, 1000);
    expect(boxAt(boxes, 650, 2 * FLAME_LINE_HEIGHT + 1)?.node).toBe(findNode(tree, "b/z"));
    expect(boxAt(boxes, 850, 2 * FLAME_LINE_HEIGHT + 1)).toBeNull();
    expect(boxAt(boxes, 1000, 0)).toBeNull();
  });
});

describe("treemap", () => {
  const boxes = treemap(tree, total, 0, 804, 400 + HEADING_HEIGHT + 2);
  const box = (path: string, own = false) =>
    boxes.find((found) => pathOf(tree, found.node) === path && found.own === own);

  it("makes areas proportional to weights, inside the parents", () => {
    const [a, b] = [box("a/x"), box("b")];
    expect([b?.width, b?.height]).toEqual([720, 400]);
    expect([a?.x, a?.width, a?.height]).toEqual([722, 80, 400]);
    const [y, z] = [box("b/y"), box("b/z")];
    const area = (of: typeof a): number => (of?.width ?? 0) * (of?.height ?? 0);
    expect(area(y) / area(z)).toBeCloseTo(3);
    // Rows of b itself have a box beside its children.
    expect(area(z) / area(box("b", true))).toBeCloseTo(2);
    expect((area(y) + area(z)) / (716 * (400 - HEADING_HEIGHT - 2))).toBeCloseTo(80 / 90);
  });

  it("draws a chain without branches as one box", () => {
    expect(box("a")).toBeUndefined();
    expect(box("a/x")?.from).toBe(findNode(tree, "a"));
  });

  it("overlaps boxes only with the boxes that contain them", () => {
    for (const inner of boxes)
      for (const outer of boxes) {
        const apart =
          inner.x + inner.width <= outer.x + 1e-6 ||
          outer.x + outer.width <= inner.x + 1e-6 ||
          inner.y + inner.height <= outer.y + 1e-6 ||
          outer.y + outer.height <= inner.y + 1e-6;
        const holds = (big: typeof inner, small: typeof inner): boolean =>
          !big.own && small.node < tree.end[big.node] && small.node >= big.node;
        const [nested, around] = [holds(outer, inner), holds(inner, outer)];
        expect(inner === outer || apart || nested || around).toBe(true);
      }
  });

  it("gathers boxes that are too small to see", () => {
    const many = weightedTree([
      ["big", 1_000_000],
      ...Array.from({ length: 1000 }, (_, i): [string, number] => [`s${i}`, 10]),
    ]);
    const drawn = treemap(many.tree, many.total, 0, 600, 400);
    expect(drawn.map(({ gathered }) => gathered)).toEqual([0, 0, 1000]);
  });

  it("is empty without weights", () => {
    expect(treemap(tree, new Float64Array(tree.length), 0, 100, 100)).toEqual([]);
  });
});

describe("squarify", () => {
  it("matches the paper's example: 6 6 4 3 2 2 1 into 6 by 4", () => {
    const placed = squarify([6, 6, 4, 3, 2, 2, 1], { x: 0, y: 0, width: 6, height: 4 });
    const rounded = placed.map(({ x, y, width, height }) =>
      [x, y, width, height].map((value) => Math.round(value * 100) / 100),
    );
    expect(rounded.slice(0, 4)).toEqual([
      [0, 0, 3, 2],
      [0, 2, 3, 2],
      [3, 0, 1.71, 2.33],
      [4.71, 0, 1.29, 2.33],
    ]);
    const area = placed.reduce((sum, { width, height }) => sum + width * height, 0);
    expect(area).toBeCloseTo(24);
  });
});
