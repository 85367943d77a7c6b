import { isPinch, type MoveKey, onMoveKeys, onWheel, zoomFactor } from "../../base/input";
import { formatCounted, formatShare } from "../../base/units";
import { childrenOf, shortLabel } from "../../layout/tree/tree";
import { ROLES } from "../../payload/generated/constants";
import { type Actions, boxOfNode, type Scene } from "./scene";

/** Return ARIA attributes that describe a node to a screen reader. */
export function describe(scene: Scene, node: number): Record<string, string | number> {
  const { tree, weights, unit, top } = scene;
  const { total, count, role } = weights;
  const siblings = weightedChildren(scene, tree.parent[node]);
  const described = [
    shortLabel(tree, node),
    unit.format(total[node]),
    `${formatShare(total[node], total[0])} of the total`,
    formatCounted(count[node], "row"),
    ...(role[node] === 0 ? [] : [`mostly ${ROLES[role[node]]}`]),
  ];
  return {
    role: "treeitem",
    "aria-label": described.join(", "),
    "aria-level": tree.depth[node] - tree.depth[top] + 1,
    "aria-posinset": Math.max(siblings.indexOf(node), 0) + 1,
    "aria-setsize": Math.max(siblings.length, 1),
    "aria-expanded": weightedChildren(scene, node).length > 0 ? "true" : "false",
    "data-node": node,
  };
}

/** Return the children of a node with a weight, in the order of the charts. */
function weightedChildren({ tree, weights: { total } }: Scene, node: number): number[] {
  if (node < 0) return [];
  return childrenOf(tree, node)
    .filter((child) => total[child] > 0)
    .sort((a, b) => total[b] - total[a] || a - b);
}

/** Return the node to zoom to on the way from the visible root to a node: the next that weighs less. */
export function stepIn({ tree, weights, top }: Scene, node: number): number {
  let next = node;
  for (let at = node; at > top; at = tree.parent[at]) if (weights.total[at] < weights.total[top]) next = at;
  return next;
}

/** Return the nearest ancestor of the visible root that weighs more, or the root. */
export function stepOut({ tree, weights, top }: Scene): number {
  let at = top;
  while (at > 0 && weights.total[at] === weights.total[top]) at = tree.parent[at];
  return Math.max(at, 0);
}

/** Return the node `by` places to the right among the children of its parent. */
export function nodeBeside(scene: Scene, node: number, by: number): number {
  if (node === scene.top) return node;
  const siblings = weightedChildren(scene, scene.tree.parent[node]);
  return siblings[Math.min(Math.max(siblings.indexOf(node) + by, 0), siblings.length - 1)];
}

/** Handle a key for the focused node. Return the node with the focus afterwards, or null for other keys. */
export function onTreeKey(
  event: KeyboardEvent,
  scene: Scene,
  node: number,
  actions: Actions,
  upward = false,
): number | null {
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  const { tree, top } = scene;
  const stay = (act: () => void) => (): number => {
    act();
    return node;
  };
  const keys: Partial<Record<string, () => number>> = {
    [upward ? "ArrowUp" : "ArrowDown"]: () => weightedChildren(scene, node)[0] ?? node,
    [upward ? "ArrowDown" : "ArrowUp"]: () => (node === top ? top : tree.parent[node]),
    ArrowRight: () => nodeBeside(scene, node, 1),
    ArrowLeft: () => nodeBeside(scene, node, -1),
    Home: () => top,
    Enter: stay(() => actions.press(boxOfNode(node), event.shiftKey)),
    o: stay(() => actions.filterRows(node)),
    c: stay(() => actions.sandwich(node)),
  };
  // At the root, Escape closes other things.
  if (top !== 0) keys["Escape"] = stay(() => actions.zoom(Math.max(tree.parent[top], 0)));
  const act = keys[event.key];
  if (act === undefined) return null;
  event.preventDefault();
  event.stopPropagation();
  return act();
}

/** Steps of a tree's chart, which zooms from node to node. */
interface Steps {
  in: () => void;
  out: () => void;
  beside: (by: number) => void;
}

/** Zoom for a step from one node to another, less than that of one notch of a mouse wheel. */
const ZOOM_PER_STEP = 1.2;

/** Listen to Ctrl + wheel, pinch, and W A S D over a tree. Return a function that stops listening. */
export function bindSteps(element: HTMLElement, steps: { current: Steps }): () => void {
  const stop = new AbortController();
  let zoomed = 1;
  const turn = (event: WheelEvent): boolean => {
    if (!isPinch(event)) return false;
    const factor = zoomFactor(event);
    // A turn in the other direction starts anew.
    zoomed = (zoomed - 1) * (factor - 1) < 0 ? factor : zoomed * factor;
    if (zoomed > ZOOM_PER_STEP) steps.current.out();
    else if (zoomed < 1 / ZOOM_PER_STEP) steps.current.in();
    else return true;
    zoomed = 1;
    return true;
  };
  const step = ({ key }: { key: MoveKey }): void => {
    if (key === "w") steps.current.in();
    else if (key === "s") steps.current.out();
    else steps.current.beside(key === "d" ? 1 : -1);
  };
  onWheel(element, turn, stop.signal);
  onMoveKeys(element, step, stop.signal);
  return () => stop.abort();
}
