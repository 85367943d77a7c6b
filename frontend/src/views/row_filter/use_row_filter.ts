import { createContext } from "preact";
import { useMemo } from "preact/hooks";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import { formatCount } from "../../base/units";
import { labelOf, pathNodes, findNode, rowsBelow, type Tree } from "../../layout/tree/tree";
import { maskOf, readFilter, type RowRange, type RowFilter } from "../../layout/url_values/row_filter";
import type { Rows } from "../../payload/recording/rows";
import { useFetched } from "../data/use_fetched";
import type { ViewState } from "../state/view_state";
import { keyOf, type Trees } from "./lazy_trees";

/** The rows that all charts are confined to. */
export interface Only {
  /** What they are, in words; empty where charts are confined to nothing. */
  label: string;
  /** 1 for each of them; null for all rows. */
  rows: Uint8Array | null;
  /** Why the filter does nothing. */
  error: string | null;
}

const ALL: Only = { label: "", rows: null, error: null };

export const OnlyContext = createContext<Only>(ALL);

/** Reads the filter of the page's state; what it names is looked up once it is known. */
export function useOnly(store: Store<ViewState>, trees: Trees | null, rows: Rows | null): Only {
  const text = useStore(store, (state) => state.row_filter);
  const filter = useMemo(() => readFilter(text), [text]);
  const key = filter?.kind === "node" ? keyOf(filter) : null;
  const tree = useFetched(trees === null ? null : key, () =>
    filter?.kind === "node" && trees !== null ? trees.get(filter) : Promise.reject(new Error("no tree")),
  );
  return useMemo(() => {
    if (text === "" || rows === null) return ALL;
    if (filter === null) return { label: text, rows: null, error: "is no filter of this page" };
    if (filter.kind === "rows") return ofRows(filter.ranges, rows);
    if (tree.error !== null) return { label: filter.path, rows: null, error: tree.error.message };
    return tree.value === null ? { label: filter.path, rows: null, error: null } : ofNode(filter, tree.value);
  }, [text, filter, rows, tree.value, tree.error]);
}

function ofRows(ranges: readonly RowRange[], rows: Rows): Only {
  const mask = maskOf(ranges, rows.length);
  const count = mask.reduce((sum, chosen) => sum + chosen, 0);
  const name = count === 1 ? rows.name.at(mask.indexOf(1)) : "";
  return { label: name || `${formatCount(count)} chosen`, rows: mask, error: null };
}

function ofNode(filter: Extract<RowFilter, { kind: "node" }>, tree: Tree): Only {
  const node = findNode(tree, filter.path);
  if (node < 0) return { label: filter.path, rows: null, error: "is not in this recording" };
  const label = pathNodes(tree, node)
    .map((at) => labelOf(tree, at))
    .join(" › ");
  return { label, rows: rowsBelow(tree, node), error: null };
}
