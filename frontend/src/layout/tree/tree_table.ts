import { childrenOf, labelOf, pathNodes, type Tree } from "./tree";
import { formatCsv } from "../../base/csv";
import type { Weights } from "./weights";

export type TreeSortKey = "name" | "total" | "self" | "count";

export interface TreeSort {
  key: TreeSortKey;
  descending: boolean;
}

/** One line of the table of a tree. */
export interface TreeLine {
  node: number;
  /** Steps below the node that the table is of. */
  level: number;
  /** Whether what is below it is shown; null where nothing is below it. */
  expanded: boolean | null;
}

/** Levels that are open before anyone has opened any. */
const EXPANDED_LEVELS = 2;

/**
 * The lines below and with `top`, siblings in order. `toggled` nodes are not as they begin: open on the first levels,
 * and where a node is all that is below another. Where a search `marked` nodes, only these are shown, with what is
 * above them, opened, and with what is below them.
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
  // A list of what is still to come, last first: trees may be deeper than calls can be.
  const coming = [{ node: top, level: 0, found: false, alone: true }];
  for (let next = coming.pop(); next !== undefined; next = coming.pop()) {
    const { node, level } = next;
    const found = next.found || marked?.[node] === 1;
    const children = childrenOf(tree, node).filter(
      (child) => weights.total[child] !== 0 && (leads === null || found || leads[child] === 1),
    );
    const begins = leads === null ? level < EXPANDED_LEVELS || next.alone : hasMarkedChild(tree, leads, node);
    const open = begins !== toggled.has(node);
    lines.push({ node, level, expanded: children.length === 0 ? null : open });
    if (!open) continue;
    children.sort(order).reverse();
    for (const child of children)
      coming.push({ node: child, level: level + 1, found, alone: children.length === 1 });
  }
  return lines;
}

/** 1 for each marked node and each one above such a node. */
function markAncestors({ length, parent }: Tree, marked: Uint8Array): Uint8Array {
  const leads = marked.slice();
  for (let node = length - 1; node > 0; node--) if (leads[node] === 1) leads[parent[node]] = 1;
  return leads;
}

function hasMarkedChild(tree: Tree, leads: Uint8Array, node: number): boolean {
  return childrenOf(tree, node).some((child) => leads[child] === 1);
}

const collator = new Intl.Collator("en", { numeric: true });

function compareNodes(tree: Tree, weights: Weights, { key, descending }: TreeSort) {
  const sign = descending ? -1 : 1;
  if (key === "name")
    return (a: number, b: number): number =>
      sign * collator.compare(labelOf(tree, a), labelOf(tree, b)) || a - b;
  const column = weights[key];
  return (a: number, b: number): number => sign * (column[a] - column[b]) || a - b;
}

/** Everything below and with `top` that weighs something, as CSV; `unit` is what the weights are in. */
export function treeCsv(tree: Tree, weights: Weights, top: number, unit: string): string {
  const rows: (string | number)[][] = [];
  for (let node = top; node < tree.end[top]; node++) {
    if (weights.total[node] === 0) continue;
    const path = pathNodes(tree, node).map((at) => labelOf(tree, at));
    rows.push([
      path.join("/"),
      tree.depth[node],
      weights.total[node],
      weights.self[node],
      weights.count[node],
      tree.merged[node],
    ]);
  }
  return formatCsv(["path", "depth", `total_${unit}`, `self_${unit}`, "rows", "merged"], rows);
}
