import { type Actions, boxOfNode } from "../scene/actions";
import { weightedChildren } from "./describe";
import type { Scene } from "../scene/scene";

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
