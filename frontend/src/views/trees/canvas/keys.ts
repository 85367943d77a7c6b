import { type Actions, boxOfNode } from "../scene/actions";
import { weightedChildren } from "./describe";
import type { Scene } from "../scene/scene";

/** Handle a key for the focused node. Return the node with the focus afterwards, or null for other keys. */
export function onTreeKey(event: KeyboardEvent, scene: Scene, node: number, actions: Actions): number | null {
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  const { tree, top } = scene;
  const beside = (by: number): number => {
    if (node === top) return node;
    const siblings = weightedChildren(scene, tree.parent[node]);
    return siblings[Math.min(Math.max(siblings.indexOf(node) + by, 0), siblings.length - 1)];
  };
  const stay = (act: () => void) => (): number => {
    act();
    return node;
  };
  const keys: Partial<Record<string, () => number>> = {
    ArrowDown: () => weightedChildren(scene, node)[0] ?? node,
    ArrowUp: () => (node === top ? top : tree.parent[node]),
    ArrowRight: () => beside(1),
    ArrowLeft: () => beside(-1),
    Home: () => top,
    Enter: stay(() => actions.press(boxOfNode(node), event.shiftKey)),
    o: stay(() => actions.filterRows(node)),
  };
  // At the root, Escape closes other things.
  if (top !== 0) keys["Escape"] = stay(() => actions.zoom(Math.max(tree.parent[top], 0)));
  const act = keys[event.key];
  if (act === undefined) return null;
  event.preventDefault();
  event.stopPropagation();
  return act();
}
