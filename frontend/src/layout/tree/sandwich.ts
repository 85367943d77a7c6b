import { emptyTree, functionOf, type Tree } from "./tree";
import type { Weights } from "./weights";

/**
 * Invert a tree: the children of node 0 are the nodes that rows belong to, and each node's children are its
 * parents in the original tree. A row belongs to the end of its reversed path, so each path counts once, even
 * if a name recurs in it.
 */
export function invert(tree: Tree): Tree {
  const paths = new Paths(tree);
  const pathOf = new Int32Array(tree.length).fill(-1);
  const end = (node: number): number => {
    if (pathOf[node] < 0) {
      let path = 0;
      for (let at = node; at > 0; at = tree.parent[at]) path = paths.below(path, at);
      pathOf[node] = path;
    }
    return pathOf[node];
  };
  const rest = end(tree.rest);
  const ends = tree.leaf.map(end);
  return paths.tree(ends, rest);
}

/** A trie of paths. Path 0 is the empty path. */
class Paths {
  readonly parent = [-1];
  /** A node of the tree with the path's last name. */
  readonly source = [0];
  private readonly known = new Map<number, number>();

  constructor(private readonly of: Tree) {}

  /** Return the path that extends another one by a node's name. */
  below(path: number, node: number): number {
    // Both factors are below 2**26 for any tree that fits into a browser, so the product is exact.
    const key = path * this.of.names + this.of.name[node];
    const found = this.known.get(key);
    if (found !== undefined) return found;
    const made = this.parent.push(path) - 1;
    this.source.push(node);
    this.known.set(key, made);
    return made;
  }

  /** Return the paths as a tree; `ends` are the paths of the rows, `rest` is that of bytes without a row. */
  tree(ends: Int32Array, rest: number): Tree {
    const tree = this.of;
    const { order, last } = this.preorder();
    const place = new Int32Array(order.length);
    order.forEach((path, at) => (place[path] = at));
    const made = emptyTree(order.length);
    order.forEach((path, at) => {
      const source = this.source[path];
      made.end[at] = last[path];
      made.name[at] = tree.name[source];
      made.merged[at] = tree.merged[source];
      made.framework[at] = tree.framework[source];
      if (at === 0) return;
      made.parent[at] = place[this.parent[path]];
      made.depth[at] = made.depth[made.parent[at]] + 1;
    });
    const { text, names } = tree;
    return { ...made, leaf: ends.map((path) => place[path]), rest: place[rest], text, names };
  }

  /** Return the paths in preorder, and the end of each path's subtree. */
  private preorder(): { order: Int32Array; last: Int32Array } {
    const count = this.parent.length;
    const size = new Int32Array(count).fill(1);
    for (let path = count - 1; path > 0; path--) size[this.parent[path]] += size[path];
    // A path is created after its prefix, and siblings keep their order of creation.
    const at = new Int32Array(count);
    const next = new Int32Array(count);
    next[0] = 1;
    const order = new Int32Array(count);
    for (let path = 1; path < count; path++) {
      const parent = this.parent[path];
      at[path] = next[parent];
      next[parent] += size[path];
      next[path] = at[path] + 1;
      order[at[path]] = path;
    }
    return { order, last: at.map((place, path) => place + size[path]) };
  }
}

/** A function of a tree, at any of its lines. Each row counts once, even if the function calls itself. */
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
    // A recursive call is part of the outer call.
    if (node < (inside.get(label) ?? 0)) continue;
    inside.set(label, tree.end[node]);
    found.total += total[node];
    found.count += count[node];
  }
  return [...functions.values()].sort((a, b) => b.total - a.total || b.self - a.self);
}

/** The callers and the callees of a function, as trees with the function at the root. */
interface Sandwich {
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
  /** Return the paths as a tree whose root has the label; `ends` are those of the nodes. */
  const rooted = (paths: Paths, ends: Int32Array): Tree => {
    const made = paths.tree(
      tree.leaf.map((leaf) => ends[leaf]),
      0,
    );
    const { names, text } = made;
    made.name[0] = names;
    return { ...made, names: names + 1, text: (name) => (name === names ? shown : text(name)) };
  };
  return {
    callees: rooted(down, below),
    callers: rooted(up, above),
    rows: Uint8Array.from(tree.leaf, (leaf) => inside[leaf]),
  };
}

function functionOfName(tree: Tree, name: number, known: Map<number, string>): string {
  let label = known.get(name);
  if (label === undefined) known.set(name, (label = functionOf(tree.text(name))));
  return label;
}
