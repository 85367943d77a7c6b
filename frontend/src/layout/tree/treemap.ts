import type { PixelBox } from "../axis";
import type { TreeBox } from "./flame";
import { childrenOf, type Tree } from "./tree";

/** Height of the heading of a node with visible children. */
export const HEADING_HEIGHT = 17;
/** Smaller nodes have no room for a heading. Their contents are visible after zooming. */
const MIN_HEADED = { width: 44, height: 40 };
const GAP = 2;
/** Nodes with a smaller area in pixels are gathered into one box. */
const MIN_AREA = 24;

/**
 * Lay out `top` and its descendants as nested boxes with areas proportional to weights, and headings on nodes
 * with visible children. A node and an only child of the same weight are drawn as one box.
 */
export function treemap(
  tree: Tree,
  total: Float64Array,
  top: number,
  width: number,
  height: number,
): TreeBox[] {
  const boxes: TreeBox[] = [];
  const put = (from: number, rect: PixelBox): void => {
    const { node, children } = chain(tree, total, from);
    boxes.push({ node, gathered: 0, own: false, folded: 0, from, ...rect });
    if (children.length === 0 || rect.width < MIN_HEADED.width || rect.height < MIN_HEADED.height) return;
    const inside = {
      x: rect.x + GAP,
      y: rect.y + HEADING_HEIGHT,
      width: rect.width - 2 * GAP,
      height: rect.height - HEADING_HEIGHT - GAP,
    };
    const perWeight = (inside.width * inside.height) / total[node];
    const drawn = children.filter((child) => total[child] * perWeight >= MIN_AREA);
    const small = children.slice(drawn.length);
    const area = (nodes: number[]): number => nodes.reduce((sum, child) => sum + total[child], 0) * perWeight;
    const items: { area: number; put: (at: PixelBox) => void }[] = drawn.map((child) => ({
      area: area([child]),
      put: (at) => put(child, at),
    }));
    items.push({
      area: area(small),
      put: (at) =>
        void boxes.push({ node, gathered: small.length, own: false, folded: 0, from: node, ...at }),
    });
    items.push({
      area: total[node] * perWeight - area(children),
      put: (at) => void boxes.push({ node, gathered: 0, own: true, folded: 0, from: node, ...at }),
    });
    const some = items.filter((item) => item.area >= 1).sort((a, b) => b.area - a.area);
    const areas = some.map((item) => item.area);
    squarify(areas, inside).forEach((at, i) => some[i].put(at));
  };
  if (total[top] > 0 && width > 0 && height > 0) put(top, { x: 0, y: 0, width, height });
  return boxes;
}

/** Follow a node down while one child has all of its weight. Return the last node with its children, largest first. */
function chain(tree: Tree, total: Float64Array, from: number): { node: number; children: number[] } {
  let node = from;
  for (;;) {
    const children = childrenOf(tree, node).filter((child) => total[child] > 0);
    if (children.length !== 1 || total[children[0]] < total[node] || from === 0)
      return { node, children: children.sort((a, b) => total[b] - total[a] || a - b) };
    node = children[0];
  }
}

/**
 * Fill a rectangle with rectangles of these areas, largest first, as square as possible. Rows lie along the shorter
 * side; each takes as many areas as improve its worst aspect ratio (Bruls, Huizing and van Wijk, 2000).
 */
export function squarify(areas: readonly number[], into: PixelBox): PixelBox[] {
  const placed: PixelBox[] = [];
  let left = into;
  for (let from = 0; from < areas.length;) {
    const side = Math.min(left.width, left.height);
    let sum = areas[from];
    let to = from + 1;
    while (to < areas.length) {
      const wider = sum + areas[to];
      if (worstRatio(areas[from], areas[to], wider, side) > worstRatio(areas[from], areas[to - 1], sum, side))
        break;
      sum = wider;
      to += 1;
    }
    left = putRow(areas.slice(from, to), sum, left, placed);
    from = to;
  }
  return placed;
}

/** Return the worst aspect ratio in a row of length `side`, given its largest and smallest area. */
function worstRatio(most: number, least: number, sum: number, side: number): number {
  return Math.max((side * side * most) / (sum * sum), (sum * sum) / (side * side * least));
}

/** Place a row along the shorter side and return the remaining rectangle. */
function putRow(areas: readonly number[], sum: number, into: PixelBox, placed: PixelBox[]): PixelBox {
  let { x, y } = into;
  if (into.width >= into.height) {
    const width = into.height > 0 ? sum / into.height : 0;
    for (const area of areas) {
      const height = (area / sum) * into.height;
      placed.push({ x, y, width, height });
      y += height;
    }
    return { ...into, x: x + width, width: Math.max(into.width - width, 0) };
  }
  const height = into.width > 0 ? sum / into.width : 0;
  for (const area of areas) {
    const width = (area / sum) * into.width;
    placed.push({ x, y, width, height });
    x += width;
  }
  return { ...into, y: y + height, height: Math.max(into.height - height, 0) };
}
