import type { Search } from "../../base/search";
import { labelOf, type Tree } from "./tree";

/** Matches of a search among nodes with a nonzero weight. */
export interface TreeMatches {
  /** 1 for each node whose label matches; null without a search. */
  matching: Uint8Array | null;
  /** 1 for each matching node and its descendants; null without a search. */
  highlighted: Uint8Array | null;
  nodes: number;
  /** Total weight of the matching subtrees, each row counted once. */
  weight: number;
}

/** Return the labels of a tree, each once. */
export function treeTexts(tree: Tree): string[] {
  return Array.from({ length: tree.names }, (_, name) => tree.text(name));
}

export function searchTree(tree: Tree, total: Float64Array, search: Search): TreeMatches {
  if (search.empty) return { matching: null, highlighted: null, nodes: 0, weight: 0 };
  const matching = new Uint8Array(tree.length);
  const highlighted = new Uint8Array(tree.length);
  const known = new Map<number, boolean>();
  let nodes = 0;
  let weight = 0;
  let counted = 0;
  // Node 0 has no label of its own.
  for (let node = 1; node < tree.length; node++) {
    if (total[node] === 0) continue;
    const name = tree.name[node];
    let matches = known.get(name);
    if (matches === undefined) known.set(name, (matches = search.matches(labelOf(tree, node))));
    if (!matches) continue;
    matching[node] = 1;
    nodes += 1;
    // Nodes in a subtree that is already counted add no weight.
    if (node < counted) continue;
    weight += total[node];
    counted = tree.end[node];
    highlighted.fill(1, node, counted);
  }
  return { matching, highlighted, nodes, weight };
}
