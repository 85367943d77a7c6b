import { Paths } from "./invert";
import { functionOf, type Tree } from "./tree";
import type { Weights } from "./weights";

/** A function of a tree, at any of its lines. Each row counts once, also where the function calls itself. */
export interface FunctionTotal {
  label: string;
  /** Weight of the rows that it or its callees allocated, and of those that it allocated itself. */
  total: number;
  self: number;
  count: number;
  framework: boolean;
}

/** Return the functions of a tree that have a weight, the one with the largest total first. */
export function functionTotals(tree: Tree, { total, self, count }: Weights): FunctionTotal[] {
  const functions = new Map<string, FunctionTotal>();
  const known = new Map<number, string>();
  const inside = new Map<string, number>();
  for (let node = 1; node < tree.length; node++) {
    if (total[node] === 0) continue;
    const label = functionOfName(tree, tree.name[node], known);
    let found = functions.get(label);
    if (found === undefined) {
      found = { label, total: 0, self: 0, count: 0, framework: tree.framework[node] === 1 };
      functions.set(label, found);
    }
    found.self += self[node];
    // Calls of itself are part of the call that they are in.
    if (node < (inside.get(label) ?? 0)) continue;
    inside.set(label, tree.end[node]);
    found.total += total[node];
    found.count += count[node];
  }
  return [...functions.values()].sort((a, b) => b.total - a.total || b.self - a.self);
}

/** The callers and the callees of a function, as trees with the function at the root. */
export interface Sandwich {
  callers: Tree;
  callees: Tree;
  /** 1 for each row that the function or its callees allocated. */
  rows: Uint8Array;
}

/** Return the sandwich of a function, or null if the tree does not have it; `shown` is the label of the roots. */
export function sandwich(tree: Tree, label: string, shown = label): Sandwich | null {
  const known = new Map<number, string>();
  const [down, up] = [new Paths(tree), new Paths(tree)];
  const [below, above] = [new Int32Array(tree.length), new Int32Array(tree.length)];
  const inside = new Uint8Array(tree.length);
  for (let node = 1, end = 0; node < tree.length; node++) {
    if (node < end) {
      below[node] = down.below(below[tree.parent[node]], node);
      above[node] = above[tree.parent[node]];
      inside[node] = 1;
      continue;
    }
    if (functionOfName(tree, tree.name[node], known) !== label) continue;
    end = tree.end[node];
    inside[node] = 1;
    for (let at = tree.parent[node]; at > 0; at = tree.parent[at]) above[node] = up.below(above[node], at);
  }
  if (!inside.includes(1)) return null;
  return {
    callees: withRoot(
      down.tree(
        tree.leaf.map((leaf) => below[leaf]),
        0,
      ),
      shown,
    ),
    callers: withRoot(
      up.tree(
        tree.leaf.map((leaf) => above[leaf]),
        0,
      ),
      shown,
    ),
    rows: Uint8Array.from(tree.leaf, (leaf) => inside[leaf]),
  };
}

/** Give the root of a tree a label. */
function withRoot(tree: Tree, label: string): Tree {
  const { names, text } = tree;
  tree.name[0] = names;
  return { ...tree, names: names + 1, text: (name) => (name === names ? label : text(name)) };
}

function functionOfName(tree: Tree, name: number, known: Map<number, string>): string {
  let label = known.get(name);
  if (label === undefined) known.set(name, (label = functionOf(tree.text(name))));
  return label;
}
