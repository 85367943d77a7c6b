import { childrenOf, labelOf, pathNodes, type Tree } from "./tree";
import { formatCsv } from "../../base/csv";
import { byNumber, indices } from "../../base/sort";
import type { Weights } from "./weights";

export type TreeSortKey = "name" | "total" | "self" | "count";

export interface TreeSort {
  key: TreeSortKey;
  descending: boolean;
}

/** One line of a tree's table. */
export interface TreeLine {
  node: number;
  /** Depth below the top node of the table. */
  level: number;
  /** Whether the node is expanded; null if it has no visible children. */
  expanded: boolean | null;
}

/** Levels that are expanded by default. */
const EXPANDED_LEVELS = 2;

/**
 * Return the lines of `top` and its descendants, siblings in sort order. By default, the first levels and
 * only children are expanded; `toggled` nodes have the opposite state. With a search, only `marked` nodes,
 * their ancestors (expanded) and their descendants are listed.
 */
export function treeLines(
  tree: Tree,
  weights: Weights,
  top: number,
  sort: TreeSort,
  toggled: ReadonlySet<number>,
  marked: Uint8Array | null,
): TreeLine[] {
  const lines: TreeLine[] = [];
  const leads = marked === null ? null : markAncestors(tree, marked);
  const order = compareNodes(tree, weights, sort);
  // A stack of pending nodes, last first: recursion could overflow on deep trees.
  const coming = [{ node: top, level: 0, found: false, alone: true }];
  for (let next = coming.pop(); next !== undefined; next = coming.pop()) {
    const { node, level } = next;
    const found = next.found || marked?.[node] === 1;
    const children = childrenOf(tree, node).filter(
      (child) => weights.total[child] !== 0 && (leads === null || found || leads[child] === 1),
    );
    const begins =
      leads === null
        ? level < EXPANDED_LEVELS || next.alone
        : childrenOf(tree, node).some((child) => leads[child] === 1);
    const open = begins !== toggled.has(node);
    lines.push({ node, level, expanded: children.length === 0 ? null : open });
    if (!open) continue;
    children.sort(order).reverse();
    for (const child of children)
      coming.push({ node: child, level: level + 1, found, alone: children.length === 1 });
  }
  return lines;
}

/** Return 1 for each marked node and each of its ancestors. */
function markAncestors({ length, parent }: Tree, marked: Uint8Array): Uint8Array {
  const leads = marked.slice();
  for (let node = length - 1; node > 0; node--) if (leads[node] === 1) leads[parent[node]] = 1;
  return leads;
}

function compareNodes(tree: Tree, weights: Weights, { key, descending }: TreeSort) {
  const sign = descending ? -1 : 1;
  if (key === "name")
    return (a: number, b: number): number => sign * byNumber(labelOf(tree, a), labelOf(tree, b)) || a - b;
  const column = weights[key];
  return (a: number, b: number): number => sign * (column[a] - column[b]) || a - b;
}

/** Format `top` and its descendants with a nonzero weight as CSV; `unit` is the unit of the weights. */
export function treeCsv(tree: Tree, weights: Weights, top: number, unit: string): string {
  const nodes = indices(tree.end[top]).filter((node) => node >= top && weights.total[node] !== 0);
  const path = (node: number): string =>
    pathNodes(tree, node)
      .map((at) => labelOf(tree, at))
      .join("/");
  return formatCsv(nodes, [
    ["path", path],
    ["depth", (node) => tree.depth[node]],
    [`total_${unit}`, (node) => weights.total[node]],
    [`self_${unit}`, (node) => weights.self[node]],
    ["rows", (node) => weights.count[node]],
    ["merged", (node) => tree.merged[node]],
  ]);
}
