import type { PixelBox } from "../axis";
import { childrenOf, type Tree } from "./tree";

/**
 * A rectangle of a tree in pixels, x to the right and y down. Nodes too small to draw are gathered into one
 * box: `node` is then their parent and `gathered` their number; otherwise `gathered` is 0.
 */
export interface TreeBox extends PixelBox {
  node: number;
  gathered: number;
  /** Whether the box stands for the rows of the node itself, next to its children. */
  own: boolean;
  /** Number of common root frames that the box stands for, from `from` to `node`; 0 for other boxes. */
  folded: number;
  /** Top of a chain of nodes drawn as one box, with `node` at the bottom; otherwise the node itself. */
  from: number;
}

export const FLAME_LINE_HEIGHT = 20;
/** A narrower box could be neither seen nor clicked. */
const MIN_WIDTH = 2;
/** Deeper levels are visible after zooming. Canvas heights are limited. */
export const MAX_LEVELS = 100;

/** Chains of nodes that are drawn as one line: the last node of each by the first. */
export type Folds = ReadonlyMap<number, number>;
export const NO_FOLDS: Folds = new Map();

/** Chains of fewer nodes are not worth a click. */
const MIN_FOLDED = 2;

/**
 * Return the common root frames of a tree: the frames below the root that do nothing but call one other frame. The
 * frame at which the paths diverge stays a line of its own.
 */
export function rootFolds(tree: Tree, total: Float64Array): Folds {
  const folds = new Map<number, number>();
  for (const first of childrenOf(tree, 0)) {
    let end = first;
    for (let next = onlyChild(tree, total, end); next >= 0; next = onlyChild(tree, total, end)) end = next;
    const last = end === first ? first : tree.parent[end];
    if (total[first] > 0 && tree.depth[last] - tree.depth[first] + 1 >= MIN_FOLDED) folds.set(first, last);
  }
  return folds;
}

/** Return the child that has all of a node's weight, or -1. */
function onlyChild(tree: Tree, total: Float64Array, node: number): number {
  const children = childrenOf(tree, node).filter((child) => total[child] > 0);
  return children.length === 1 && total[children[0]] === total[node] ? children[0] : -1;
}

/** Lay out `top` and its descendants, one line for each level. Widths are proportional to weights, largest first. */
export function flame(
  tree: Tree,
  total: Float64Array,
  top: number,
  width: number,
  folds: Folds = NO_FOLDS,
): TreeBox[] {
  const boxes: TreeBox[] = [];
  const perWeight = total[top] > 0 ? width / total[top] : 0;
  const put = (first: number, x: number, level: number): void => {
    const node = folds.get(first) ?? first;
    const folded = node === first ? 0 : tree.depth[node] - tree.depth[first] + 1;
    boxes.push({ ...box(node, 0, x, level, total[node] * perWeight), from: first, folded });
    if (level + 1 === MAX_LEVELS) return;
    const children = childrenOf(tree, node).filter((child) => total[child] > 0);
    children.sort((a, b) => total[b] - total[a] || a - b);
    let at = x;
    children.forEach((child, i) => {
      const wide = total[child] * perWeight;
      if (wide >= MIN_WIDTH) put(child, at, level + 1);
      // The following children are not larger.
      else if (i === 0 || total[children[i - 1]] * perWeight >= MIN_WIDTH)
        boxes.push(box(node, children.length - i, at, level + 1, sum(total, children, i) * perWeight));
      at += wide;
    });
  };
  if (perWeight > 0) put(top, 0, 0);
  return boxes;
}

function box(node: number, gathered: number, x: number, level: number, width: number): TreeBox {
  return {
    node,
    gathered,
    own: false,
    folded: 0,
    from: node,
    x,
    y: level * FLAME_LINE_HEIGHT,
    width,
    height: FLAME_LINE_HEIGHT,
  };
}

function sum(total: Float64Array, nodes: number[], from: number): number {
  let weight = 0;
  for (let i = from; i < nodes.length; i++) weight += total[nodes[i]];
  return weight;
}

/** Return the number of levels in the flame graph of `top`. */
export function levelsBelow(tree: Tree, total: Float64Array, top: number, folds: Folds = NO_FOLDS): number {
  let deepest = tree.depth[top];
  // A fold moves the levels below it up by the number of levels that it saves.
  let [end, saved] = [0, 0];
  for (let node = top; node < tree.end[top]; node++) {
    const last = folds.get(node);
    if (last !== undefined) [end, saved] = [tree.end[node], tree.depth[last] - tree.depth[node]];
    if (total[node] > 0) deepest = Math.max(deepest, tree.depth[node] - (node < end ? saved : 0));
  }
  return Math.min(deepest - tree.depth[top] + 1, MAX_LEVELS);
}

/** Return the innermost box at a point, or null. */
export function boxAt(boxes: readonly TreeBox[], x: number, y: number): TreeBox | null {
  for (let i = boxes.length - 1; i >= 0; i--) {
    const { x: left, y: top, width, height } = boxes[i];
    if (left <= x && x < left + width && top <= y && y < top + height) return boxes[i];
  }
  return null;
}
