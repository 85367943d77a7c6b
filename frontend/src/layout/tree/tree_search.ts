import { compileSearch } from "../../base/search";
import { labelOf, type Tree } from "./tree";

/** What a search finds among the nodes that weigh something. */
export interface TreeMatches {
  /** 1 for each node whose label matches; null where nothing is searched for. */
  matching: Uint8Array | null;
  /** 1 for each such node and all below it; null where nothing is searched for. */
  highlighted: Uint8Array | null;
  nodes: number;
  /** Of what is at or below a match, each thing once. */
  weight: number;
}

export function searchTree(tree: Tree, total: Float64Array, typed: string): TreeMatches {
  const search = compileSearch(typed);
  if (search.empty) return { matching: null, highlighted: null, nodes: 0, weight: 0 };
  const matching = new Uint8Array(tree.length);
  const highlighted = new Uint8Array(tree.length);
  const known = new Map<number, boolean>();
  let nodes = 0;
  let weight = 0;
  let counted = 0;
  // Node 0 is the name of no thing.
  for (let node = 1; node < tree.length; node++) {
    if (total[node] === 0) continue;
    const name = tree.name[node];
    let matches = known.get(name);
    if (matches === undefined) known.set(name, (matches = search.matches(labelOf(tree, node))));
    if (!matches) continue;
    matching[node] = 1;
    nodes += 1;
    // Below a match that was counted, everything is.
    if (node < counted) continue;
    weight += total[node];
    counted = tree.end[node];
    highlighted.fill(1, node, counted);
  }
  return { matching, highlighted, nodes, weight };
}
