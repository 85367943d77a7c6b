import { useMemo } from "preact/hooks";
import type { Store } from "../../../base/store";
import { useStore } from "../../../base/store";
import type { Search } from "../../../base/search";
import { findNode, type Tree } from "../../../layout/tree/tree";
import { type TreeMatches, searchTree, treeTexts } from "../../../layout/tree/tree_search";
import { rowTexts } from "../../../layout/table/table_filter";
import { byteTime, weighTree, type Weights } from "../../../layout/tree/weights";
import type { Program } from "../../../payload/recording/program";
import type { Rows } from "../../../payload/recording/rows";
import type { PackedTexts } from "../../../payload/tables/text_column";
import type { ViewState } from "../../state/view_state";
import { useDeferred } from "../../browser/use_deferred";
import { useTerms } from "../../data/terms";
import { useSearch } from "../../data/use_search";
import { type Unit, unitOf } from "./weight_unit";

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

interface Parts {
  tree: Tree;
  rows: Rows;
  program: Program;
  /** Rows that pass the filter. */
  live: Uint32Array;
  /** Live bytes without a row. */
  unexplained: number;
  store: Store<ViewState>;
}

/** Return the texts that a search in a tree looks at: its labels, and what the table searches. */
export function searchedTexts({ tree, rows }: Pick<Parts, "tree" | "rows">): (string | PackedTexts)[] {
  return [...treeTexts(tree), ...rowTexts(rows)];
}

export function useTreeScene({ tree, rows, program, live, unexplained, store }: Parts): Scene {
  const terms = useTerms();
  const weight = useStore(store, (state) => state.tree_weight);
  const path = useStore(store, (state) => state.tree_node);
  const row = useStore(store, (state) => state.selected);
  const typed = useDeferred(useStore(store, (state) => state.search));
  const searched = useMemo(() => ({ tree, rows }), [tree, rows]);
  const search = useSearch(typed, searched, searchedTexts);
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
