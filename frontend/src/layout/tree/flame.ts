import { childrenOf, type Tree } from "./tree";

/**
 * A rectangle of a tree in pixels, x to the right and y down. Nodes too small to draw are gathered into one
 * box: `node` is then their parent and `gathered` their number; otherwise `gathered` is 0.
 */
export interface TreeBox {
  node: number;
  gathered: number;
  /** Whether the box stands for the rows of the node itself, next to its children. */
  own: boolean;
  /** Top of a chain of nodes drawn as one box, with `node` at the bottom; otherwise the node itself. */
  from: number;
  x: number;
  y: number;
  width: number;
  height: number;
}

export const FLAME_LINE_HEIGHT = 20;
/** A narrower box could be neither seen nor clicked. */
const MIN_WIDTH = 2;
/** Deeper levels are visible after zooming. Canvas heights are limited. */
export const MAX_LEVELS = 100;

/**
 * Lay out `top` and its descendants, one line for each level. Widths are proportional to weights, largest
 * first.
 */
export function flame(tree: Tree, total: Float64Array, top: number, width: number): TreeBox[] {
  const boxes: TreeBox[] = [];
  const perWeight = total[top] > 0 ? width / total[top] : 0;
  const put = (node: number, x: number, level: number): void => {
    boxes.push(box(node, 0, x, level, total[node] * perWeight));
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
export function levelsBelow(tree: Tree, total: Float64Array, top: number): number {
  let deepest = tree.depth[top];
  for (let node = top; node < tree.end[top]; node++)
    if (total[node] > 0) deepest = Math.max(deepest, tree.depth[node]);
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
