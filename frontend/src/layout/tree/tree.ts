import type { Forest } from "../../payload/responses/forest";
import type { Rows } from "../../payload/recording/rows";

/**
 * All rows of a recording as one tree: node 0 is everything, and every row hangs from one node. Nodes are in preorder:
 * below node i, itself included, are nodes i to end[i], that one excluded.
 */
export interface Tree {
  length: number;
  parent: Int32Array;
  end: Int32Array;
  /** Nodes between a node and node 0, plus 1; 0 for node 0. */
  depth: Int32Array;
  /** Number of the node's label: nodes called alike share one. */
  name: Int32Array;
  merged: Int32Array;
  framework: Uint8Array;
  leaf: Int32Array;
  /** Texts of names. */
  text: (name: number) => string;
  names: number;
  /** Node of the bytes that no row explains. */
  rest: number;
}

const EVERYTHING = "everything";
const BEFORE = "live before the recording";

/** What nodes are called that stand for what a classification cannot say. */
export interface PlaceholderLabels {
  /** Rows without a path. */
  none: string;
  /** Bytes that no row explains. */
  rest: string;
}

/**
 * One tree of the forest's trees, with nodes of their own for rows without any. An allocator knows nothing
 * of what was live `before` its recording, so that is told apart.
 */
export function buildTree(forest: Forest, rows: Rows, unsaid: PlaceholderLabels, before: boolean): Tree {
  const { length, label } = forest;
  const [noPath, earlier, rest] = [length + 1, length + 2, length + 3];
  const known = label.dictionary.length;
  const own = ["", EVERYTHING, unsaid.none, BEFORE, unsaid.rest];
  const tree = emptyTree(length + 4);
  tree.name[0] = known + 1;
  tree.end[0] = tree.length;
  for (let node = 0; node < length; node++) {
    tree.parent[node + 1] = forest.parent[node] + 1;
    tree.end[node + 1] = forest.end[node] + 1;
    tree.depth[node + 1] = tree.depth[forest.parent[node] + 1] + 1;
    tree.name[node + 1] = Math.min(label.codes[node], known);
    tree.merged[node + 1] = forest.merged[node];
    tree.framework[node + 1] = forest.framework[node];
  }
  [noPath, earlier, rest].forEach((node, i) => {
    tree.end[node] = node + 1;
    tree.depth[node] = 1;
    tree.name[node] = known + 2 + i;
  });
  const leaf = new Int32Array(rows.length);
  for (let row = 0; row < rows.length; row++) {
    const node = row < forest.leaf.length ? forest.leaf[row] : -1;
    leaf[row] = node >= 0 && node < length ? node + 1 : before && rows.start[row] < 0 ? earlier : noPath;
  }
  return {
    ...tree,
    leaf,
    names: known + own.length,
    rest,
    text: (name) => (name < known ? label.dictionary.at(name) : (own[name - known] ?? "")) || "(unnamed)",
  };
}

/** The columns of a tree of `length` nodes, every one a child of node 0. */
export function emptyTree(
  length: number,
): Pick<Tree, "length" | "parent" | "end" | "depth" | "name" | "merged" | "framework"> {
  const parent = new Int32Array(length);
  parent[0] = -1;
  return {
    length,
    parent,
    end: new Int32Array(length),
    depth: new Int32Array(length),
    name: new Int32Array(length),
    merged: new Int32Array(length).fill(1),
    framework: new Uint8Array(length),
  };
}

export function labelOf(tree: Tree, node: number): string {
  return tree.text(tree.name[node]);
}

/** Nodes right below one. */
export function childrenOf(tree: Tree, node: number): number[] {
  const children: number[] = [];
  for (let child = node + 1; child < tree.end[node]; child = tree.end[child]) children.push(child);
  return children;
}

/** The nodes from the one right below everything down to this one. */
export function pathNodes(tree: Tree, node: number): number[] {
  const line: number[] = [];
  for (let at = node; at > 0; at = tree.parent[at]) line.push(at);
  return line.reverse();
}

/** A node's labels from the top, joined by "/" as model paths are; within a label, "\\" stands before what is none. */
export function pathOf(tree: Tree, node: number): string {
  return pathNodes(tree, node)
    .map((at) => escapeLabel(labelOf(tree, at)))
    .join("/");
}

/** The node of a path, or -1 where there is none. */
export function findNode(tree: Tree, path: string): number {
  let node = 0;
  for (const part of path.match(/(?:\\.|[^\\/])+/gs) ?? []) {
    const next = childrenOf(tree, node).find((child) => escapeLabel(labelOf(tree, child)) === part);
    if (next === undefined) return -1;
    node = next;
  }
  return node;
}

function escapeLabel(label: string): string {
  return label.replaceAll(/[\\/]/g, "\\$&");
}

/** 1 for each row below a node. */
export function rowsBelow(tree: Tree, node: number): Uint8Array {
  const last = tree.end[node];
  return Uint8Array.from(tree.leaf, (leaf) => (leaf >= node && leaf < last ? 1 : 0));
}
