import { useMemo } from "preact/hooks";
import type { Search } from "../../base/search";
import { formatBytes, formatCount, formatExact } from "../../base/units";
import { rowTexts } from "../../layout/table/table_filter";
import type { TreeBox } from "../../layout/tree/flame";
import {
  findNode,
  functionOf,
  labelOf,
  pathOf,
  searchTree,
  type Tree,
  type TreeMatches,
  treeTexts,
} from "../../layout/tree/tree";
import { byteTime, weighTree, type Weights } from "../../layout/tree/weights";
import { writeFilter } from "../../layout/url_values";
import type { Program } from "../../payload/recording/recording";
import type { Rows } from "../../payload/recording/rows";
import { useDeferred } from "../browser/hooks";
import { useTerms } from "../data/terms";
import { useSearch } from "../data/use_search";
import type { TreeKind } from "../page/row_filter";
import { store, useViewState, type ViewState } from "../state/view_state";

/** Unit of a weight, and its format. */
interface Unit {
  format: (weight: number) => string;
  /** Exact value as text. */
  exact: (weight: number) => string;
  /** Heading of a CSV column. */
  column: string;
}

const BYTES: Unit = { format: formatBytes, exact: formatExact, column: "bytes" };

const NS_PER_S = 1e9;

/** Return the unit of a weight; `clock`: time is in seconds, otherwise in positions of a schedule. */
function unitOf(weight: ViewState["tree_weight"], clock: boolean, positions: string): Unit {
  if (weight === "bytes") return BYTES;
  if (clock)
    return {
      format: (value) => `${formatBytes(value / NS_PER_S)}·s`,
      exact: (value) => `${formatCount(value)} byte-nanoseconds`,
      column: "byte_ns",
    };
  return {
    format: (value) => `${formatBytes(value)} × ${positions}`,
    exact: (value) => `${formatCount(value)} bytes × ${positions}`,
    column: `byte_${positions}`,
  };
}

/** Content of a tree chart: the tree weighted at the inspected position, the zoomed node, and marks. */
export interface Scene {
  tree: Tree;
  weights: Weights;
  unit: Unit;
  /** Node that the chart is zoomed to; 0 is the root. */
  top: number;
  found: TreeMatches;
  /** Node of the selected row, or -1. */
  selected: number;
  /** Weight of every row, and what the user searches for. */
  column: Float64Array;
  search: Search;
}

export interface SceneParts {
  tree: Tree;
  rows: Rows;
  program: Program;
  /** Rows that pass the filter. */
  live: Uint32Array;
  /** Live bytes without a row. */
  unexplained: number;
}

export function useTreeScene({ tree, rows, program, live, unexplained }: SceneParts): Scene {
  const terms = useTerms();
  const weight = useViewState((state) => state.tree_weight);
  const path = useViewState((state) => state.tree_node);
  const row = useViewState((state) => state.selected);
  const typed = useDeferred(useViewState((state) => state.search));
  const searched = useMemo(() => ({ tree, rows }), [tree, rows]);
  // The labels of the tree, and what the table searches.
  const search = useSearch(typed, searched, (of) => [...treeTexts(of.tree), ...rowTexts(of.rows)]);
  const column = useMemo(
    () => (weight === "bytes" ? rows.charge : byteTime(rows, program)),
    [rows, program, weight],
  );
  // Bytes without a row have no lifetime.
  const rest = weight === "bytes" ? unexplained : 0;
  const weights = useMemo(() => weighTree(tree, rows, live, column, rest), [tree, rows, live, column, rest]);
  const found = useMemo(
    () => searchTree(tree, weights.total, search, { rows, live, column, rest }),
    [tree, weights, search, rows, live, column, rest],
  );
  // A path that this tree does not have zooms to the root.
  const top = useMemo(() => Math.max(findNode(tree, path), 0), [tree, path]);
  const unit = useMemo(
    () => unitOf(weight, program.time_ns !== null, terms.positions),
    [weight, program, terms],
  );
  const selected = row !== null && row < rows.length ? tree.leaf[row] : -1;
  return useMemo(
    () => ({ tree, weights, unit, top, found, selected, column, search }),
    [tree, weights, unit, top, found, selected, column, search],
  );
}

/** What all charts of a tree are given. */
export interface TreeChartProps {
  scene: Scene;
  actions: Actions;
  /** True if rows have roles, which colors show. */
  roles: boolean;
  /** Name of saved files, without suffix. */
  fileName: string;
}

/** Box, or a node treated as one. */
type NodeBox = Pick<TreeBox, "node" | "gathered" | "own">;

export function boxOfNode(node: number): NodeBox {
  return { node, gathered: 0, own: false };
}

/** Actions on a node, the same in all charts. */
export interface Actions {
  /** Handle a click: zoom in, or select a single row. With Shift: filter by the node. */
  press: (place: NodeBox, shift: boolean) => void;
  zoom: (node: number) => void;
  /** Filter all charts by the rows below a node. */
  filterRows: (node: number) => void;
  /** Show callers and callees of a node's function. */
  sandwich: (node: number) => void;
  /** Effect of a click, where it is not the usual one. */
  clickText?: string;
  /** Return the only row of a box, or -1. */
  rowOf: (place: NodeBox) => number;
}

export function actionsOf(scene: Scene, kind: TreeKind, live: Uint32Array): Actions {
  const { tree, weights } = scene;
  const zoom = (node: number): void => store.set({ tree_node: pathOf(tree, node) });
  const only = (node: number): void => {
    // The root filters nothing, and bytes without rows would leave nothing.
    if (node === 0 || weights.count[node] === 0) store.set({ row_filter: "" });
    else store.set({ row_filter: writeFilter({ kind: "node", ...kind, path: pathOf(tree, node) }) });
  };
  const rowOf = ({ node, gathered, own }: NodeBox): number => {
    if (gathered > 0 || weights.self[node] === 0 || (!own && weights.count[node] > 1)) return -1;
    const [row, ...more] = live.filter((at) => tree.leaf[at] === node);
    return more.length > 0 ? -1 : row;
  };
  const press = (place: NodeBox, shift: boolean): void => {
    const row = rowOf(place);
    if (shift) only(place.node);
    else if (row >= 0) store.set({ selected: row === store.get().selected ? null : row });
    else zoom(place.node);
  };
  const sandwich = (node: number): void =>
    store.set({ chart: "sandwich", sandwich_function: functionOf(labelOf(tree, node)) });
  return { press, zoom, filterRows: only, sandwich, rowOf };
}
