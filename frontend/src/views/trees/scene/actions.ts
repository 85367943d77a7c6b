import type { Store } from "../../../base/store";
import type { TreeBox } from "../../../layout/tree/flame";
import { functionOf, labelOf, pathOf } from "../../../layout/tree/tree";
import { writeFilter } from "../../../layout/url_values/row_filter";
import type { ViewState } from "../../state/view_state";
import type { Scene } from "./scene";
import type { TreeKind } from "../../row_filter/lazy_trees";

/** Box, or a node treated as one. */
export type NodeBox = Pick<TreeBox, "node" | "gathered" | "own">;

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

export function actionsOf(scene: Scene, kind: TreeKind, live: Uint32Array, store: Store<ViewState>): Actions {
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
