import { formatCount, formatShare } from "../../../base/units";
import { childrenOf, shortLabel } from "../../../layout/tree/tree";
import { ROLES } from "../../../payload/generated/constants";
import type { Scene } from "../scene/scene";

/** Return ARIA attributes that describe a node to a screen reader. */
export function describe(scene: Scene, node: number): Record<string, string | number> {
  const { tree, weights, unit, top } = scene;
  const { total, count, role } = weights;
  const siblings = weightedChildren(scene, tree.parent[node]);
  const described = [
    shortLabel(tree, node),
    unit.format(total[node]),
    `${formatShare(total[node], total[0])} of the total`,
    `${formatCount(count[node])} rows`,
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
export function weightedChildren({ tree, weights: { total } }: Scene, node: number): number[] {
  if (node < 0) return [];
  return childrenOf(tree, node)
    .filter((child) => total[child] > 0)
    .sort((a, b) => total[b] - total[a] || a - b);
}
