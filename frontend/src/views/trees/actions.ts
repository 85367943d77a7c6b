import type { Store } from "../../base/store";
import type { Box } from "../../layout/flame";
import { pathOf } from "../../layout/forest";
import { writeFilter } from "../../layout/row_filter";
import type { ViewState } from "../state";
import type { Scene } from "./scene";
import type { TreeKind } from "./trees";

/** What can be done with a node, in whichever chart it is. */
export interface Actions {
  /** What a click does: zooms in, or selects where there is nothing but one row. With Shift: shows only these rows. */
  press: (box: Pick<Box, "node" | "gathered">, shift: boolean) => void;
  zoom: (node: number) => void;
  /** Confines all charts to the rows below a node. */
  only: (node: number) => void;
  /** Row that a node is, where it is a single one without others below; else -1. */
  rowOf: (node: number) => number;
}

export function actionsOf(scene: Scene, kind: TreeKind, live: Uint32Array, store: Store<ViewState>): Actions {
  const { tree, weights } = scene;
  const zoom = (node: number): void => store.set({ node: pathOf(tree, node) });
  const only = (node: number): void => {
    // Everything is no filter, and bytes without rows would leave nothing.
    if (node === 0 || weights.count[node] === 0) store.set({ only: "" });
    else store.set({ only: writeFilter({ kind: "node", ...kind, path: pathOf(tree, node) }) });
  };
  const rowOf = (node: number): number => {
    if (weights.count[node] !== 1 || weights.self[node] === 0) return -1;
    return live.find((row) => tree.leaf[row] === node) ?? -1;
  };
  const press = ({ node, gathered }: Pick<Box, "node" | "gathered">, shift: boolean): void => {
    const row = gathered > 0 ? -1 : rowOf(node);
    if (shift) only(node);
    else if (row >= 0) store.set({ selected: row === store.get().selected ? null : row });
    else zoom(node);
  };
  return { press, zoom, only, rowOf };
}
