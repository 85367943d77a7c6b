import { emptyTree, type Tree } from "./tree";

/**
 * The tree bottom-up: under node 0 what rows hang from, below each the one above it in the tree, and so on. A row
 * hangs from the end of its whole path read backwards, so that each path is counted once, however often it comes
 * back to a name.
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
  const { order, last } = paths.preorder();
  const place = new Int32Array(order.length);
  order.forEach((path, at) => (place[path] = at));

  const inverted = emptyTree(order.length);
  order.forEach((path, at) => {
    const source = paths.source[path];
    inverted.end[at] = last[path];
    inverted.name[at] = tree.name[source];
    inverted.merged[at] = tree.merged[source];
    inverted.framework[at] = tree.framework[source];
    if (at === 0) return;
    inverted.parent[at] = place[paths.parent[path]];
    inverted.depth[at] = inverted.depth[inverted.parent[at]] + 1;
  });
  const { text, names } = tree;
  return { ...inverted, leaf: ends.map((path) => place[path]), rest: place[rest], text, names };
}

/** Paths that begin alike share their beginning. Path 0 is the empty one. */
class Paths {
  readonly parent = [-1];
  /** A node of the tree that the path's last name is of. */
  readonly source = [0];
  private readonly known = new Map<number, number>();

  constructor(private readonly tree: Tree) {}

  /** The path that goes on from another with the name of a node. */
  below(path: number, node: number): number {
    // Both factors are below 2**26 for any tree that fits a browser, so that their product is exact.
    const key = path * this.tree.names + this.tree.name[node];
    const found = this.known.get(key);
    if (found !== undefined) return found;
    const made = this.parent.push(path) - 1;
    this.source.push(node);
    this.known.set(key, made);
    return made;
  }

  /** The paths in preorder, and for each the place in it after the last one below it. */
  preorder(): { order: Int32Array; last: Int32Array } {
    const count = this.parent.length;
    const size = new Int32Array(count).fill(1);
    for (let path = count - 1; path > 0; path--) size[this.parent[path]] += size[path];
    // A path is made after the one that it goes on from; of one parent's, the first made comes first.
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
