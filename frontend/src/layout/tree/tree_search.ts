import type { Search } from "../../base/search";
import type { Rows } from "../../payload/recording/rows";
import { filterRows } from "../table/table_filter";
import { labelOf, type Tree } from "./tree";

/** Matches of a search among nodes with a nonzero weight. */
export interface TreeMatches {
  /** 1 for each node whose label matches, or whose own rows do; null without a search. */
  matching: Uint8Array | null;
  /** 1 for each matching node and its descendants; null without a search. */
  highlighted: Uint8Array | null;
  nodes: number;
  /** Weight of the matching rows: those that the table finds. */
  weight: number;
}

/** Rows of a tree, and the weight of each of them. */
export interface WeighedRows {
  rows: Rows;
  live: Uint32Array;
  column: Float64Array;
  /** Weight of the bytes that no row explains. */
  rest: number;
}

/** Return the labels of a tree, each once. */
export function treeTexts(tree: Tree): string[] {
  return Array.from({ length: tree.names }, (_, name) => tree.text(name));
}

/** Return 1 for each node whose label matches, or that is below such a node. */
function nodesBelowMatches(tree: Tree, search: Search): Uint8Array {
  const below = new Uint8Array(tree.length);
  const known = matchNames(tree, search);
  // Node 0 has no label of its own.
  for (let node = 1; node < tree.length; node++) if (known(node)) below.fill(1, node, tree.end[node]);
  return below;
}

function matchNames(tree: Tree, search: Search): (node: number) => boolean {
  const known = new Map<number, boolean>();
  return (node) => {
    const name = tree.name[node];
    let matches = known.get(name);
    if (matches === undefined) known.set(name, (matches = search.matches(labelOf(tree, node))));
    return matches;
  };
}

/** Return 1 for each row below a node whose label matches. */
export function rowsBelowMatches(tree: Tree, search: Search): Uint8Array {
  const below = nodesBelowMatches(tree, search);
  return Uint8Array.from(tree.leaf, (node) => below[node]);
}

/** Find the rows that match in a text of their own or in a label above them, and the nodes that they are in. */
export function searchTree(
  tree: Tree,
  total: Float64Array,
  search: Search,
  { rows, live, column, rest }: WeighedRows,
): TreeMatches {
  if (search.empty) return { matching: null, highlighted: null, nodes: 0, weight: 0 };
  const highlighted = nodesBelowMatches(tree, search);
  const matching = new Uint8Array(tree.length);
  const matches = matchNames(tree, search);
  for (let node = 1; node < tree.length; node++) if (total[node] !== 0 && matches(node)) matching[node] = 1;
  let weight = highlighted[tree.rest] === 1 ? rest : 0;
  const below = Uint8Array.from(tree.leaf, (node) => highlighted[node]);
  for (const row of filterRows(rows, live, search, "", below).rows) {
    weight += column[row];
    const node = tree.leaf[row];
    if (highlighted[node] === 1 || node === 0) continue;
    matching[node] = highlighted[node] = 1;
  }
  return { matching, highlighted, nodes: matching.reduce((nodes, one) => nodes + one, 0), weight };
}
