import { createContext } from "preact";
import { useMemo } from "preact/hooks";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import { formatCount } from "../../base/units";
import { labelOf, pathNodes, findNode, rowsBelow, type Tree } from "../../layout/tree/tree";
import { maskOf, readFilter, type RowRange, type RowFilter } from "../../layout/url_values/row_filter";
import { ROLES } from "../../payload/generated/constants";
import type { Rows } from "../../payload/recording/rows";
import { useFetched } from "../data/use_fetched";
import type { ViewState } from "../state/view_state";
import { treeKey, type LazyTrees } from "./lazy_trees";

/** The row filter that applies to all charts. */
export interface FilteredRows {
  /** Description of the rows; empty without a filter. */
  label: string;
  /** 1 for each row that passes; null for all rows. */
  rows: Uint8Array | null;
  /** Reason why the filter has no effect. */
  error: string | null;
}

const ALL_ROWS: FilteredRows = { label: "", rows: null, error: null };

export const RowFilterContext = createContext<FilteredRows>(ALL_ROWS);

/** Read the row filter from the page's state, and resolve it once the trees have loaded. */
export function useRowFilter(
  store: Store<ViewState>,
  trees: LazyTrees | null,
  rows: Rows | null,
): FilteredRows {
  const text = useStore(store, (state) => state.row_filter);
  const filter = useMemo(() => readFilter(text), [text]);
  const key = filter?.kind === "node" ? treeKey(filter) : null;
  const tree = useFetched(trees === null ? null : key, () =>
    filter?.kind === "node" && trees !== null ? trees.get(filter) : Promise.reject(new Error("no tree")),
  );
  return useMemo(() => {
    if (text === "" || rows === null) return ALL_ROWS;
    if (filter === null) return { label: text, rows: null, error: "is not a valid filter" };
    if (filter.kind === "rows") return filterByRanges(filter.ranges, rows);
    if (filter.kind === "roles") return filterByRoles(filter.roles, rows);
    if (tree.error !== null) return { label: filter.path, rows: null, error: tree.error.message };
    return tree.value === null
      ? { label: filter.path, rows: null, error: null }
      : filterByNode(filter, tree.value);
  }, [text, filter, rows, tree.value, tree.error]);
}

function filterByRanges(ranges: readonly RowRange[], rows: Rows): FilteredRows {
  const mask = maskOf(ranges, rows.length);
  const count = mask.reduce((sum, chosen) => sum + chosen, 0);
  const name = count === 1 ? rows.name.at(mask.indexOf(1)) : "";
  return { label: name || `${formatCount(count)} chosen`, rows: mask, error: null };
}

function filterByRoles(roles: readonly number[], rows: Rows): FilteredRows {
  const label = roles.map((role) => ROLES[role]).join(", ");
  return { label, rows: rows.role.map((role) => (roles.includes(role) ? 1 : 0)), error: null };
}

function filterByNode(filter: Extract<RowFilter, { kind: "node" }>, tree: Tree): FilteredRows {
  const node = findNode(tree, filter.path);
  if (node < 0) return { label: filter.path, rows: null, error: "is not in this recording" };
  const label = pathNodes(tree, node)
    .map((at) => labelOf(tree, at))
    .join(" › ");
  return { label, rows: rowsBelow(tree, node), error: null };
}
