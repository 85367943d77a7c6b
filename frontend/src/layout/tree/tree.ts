import type { Search } from "../../base/search";
import type { Rows } from "../../payload/recording/rows";
import type { Forest } from "../../payload/responses/forest";
import { filterRows } from "../table/table_filter";

/**
 * All rows of a recording as one tree. Node 0 is the root, and every row belongs to one node. Nodes are in
 * preorder: the subtree of node i is nodes [i, end[i]).
 */
export interface Tree {
  length: number;
  parent: Int32Array;
  end: Int32Array;
  /** Distance from node 0. */
  depth: Int32Array;
  /** Number of the node's label; equal labels share a number. */
  name: Int32Array;
  merged: Int32Array;
  framework: Uint8Array;
  leaf: Int32Array;
  /** Return the label of a name number. */
  text: (name: number) => string;
  names: number;
  /** Node of the bytes that no row explains. */
  rest: number;
}

const EVERYTHING = "everything";
const BEFORE = "live before the recording";

/** Labels of nodes that the classification does not cover. */
interface PlaceholderLabels {
  /** Rows without a path. */
  none: string;
  /** Bytes that no row explains. */
  rest: string;
}

/**
 * Join the trees of a forest under one root, and add nodes for rows without a path. If `before` is set, allocations
 * older than an allocator's recording have a node of their own, because nothing is known about them.
 */
export function buildTree(forest: Forest, rows: Rows, labels: PlaceholderLabels, before: boolean): Tree {
  const { length, label } = forest;
  const [noPath, earlier, rest] = [length + 1, length + 2, length + 3];
  const known = label.dictionary.length;
  const own = ["", EVERYTHING, labels.none, BEFORE, labels.rest];
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

/** Create the columns of a tree of `length` nodes, all children of node 0. */
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

/** Return a node's label for display: `model.py:20 layer` for a frame `layer (src/model.py:20)`. */
export function shortLabel(tree: Tree, node: number): string {
  return shortFrame(labelOf(tree, node));
}

const FRAME = /^(?:(.+) \()?([^()]*[\w>])(:\d+)(\))?$/s;

/** Return a frame with its file's name and its line first. Other labels are unchanged. */
export function shortFrame(label: string): string {
  const [, called = "", file = "", line = "", end = ""] = FRAME.exec(label) ?? [];
  if (file === "" || (called === "") !== (end === "")) return label;
  return `${file.replace(/^.*[\\/]/s, "")}${line}${called === "" ? "" : ` ${called}`}`;
}

/** Return the function of a frame, without its line: `layer (src/model.py)`. */
export function functionOf(label: string): string {
  const [, called = "", file = "", , end = ""] = FRAME.exec(label) ?? [];
  return called === "" || end === "" ? label : `${called} (${file})`;
}

/** Return the children of a node. */
export function childrenOf(tree: Tree, node: number): number[] {
  const children: number[] = [];
  for (let child = node + 1; child < tree.end[node]; child = tree.end[child]) children.push(child);
  return children;
}

/** Return the nodes on the path from the root's child down to a node. */
export function pathNodes(tree: Tree, node: number): number[] {
  const line: number[] = [];
  for (let at = node; at > 0; at = tree.parent[at]) line.push(at);
  return line.reverse();
}

/**
 * Return a node's labels from the top, joined by "/" as in model paths. A backslash escapes slashes and
 * backslashes within a label.
 */
export function pathOf(tree: Tree, node: number): string {
  return pathNodes(tree, node)
    .map((at) => escapeLabel(labelOf(tree, at)))
    .join("/");
}

/** Return the node with a path, or -1 if there is none. */
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

/** Return 1 for each row in the subtree of a node. */
export function rowsBelow(tree: Tree, node: number): Uint8Array {
  const last = tree.end[node];
  return Uint8Array.from(tree.leaf, (leaf) => (leaf >= node && leaf < last ? 1 : 0));
}

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
interface WeighedRows {
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

/** Find the rows with a match in a text of their own or in a label above them, and the nodes of these rows. */
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
