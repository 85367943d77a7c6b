import type { ColumnsOf, Tables } from "../tables/tables";

/** Columns of trees; nodes are in preorder: a node comes before its descendants. */
const TREE_COLUMNS = {
  label: "text",
  /** -1 for the root of a tree. */
  parent: "i32",
  /** The subtree of node i is nodes [i, end[i]). */
  end: "i32",
  /** Number of nodes merged into this one; 1 if none were merged. */
  merged: "i32",
  /** 1 for a frame of a framework or runtime. */
  framework: "u8",
} as const;

/** Trees over all rows of a recording. */
export interface Forest extends ColumnsOf<typeof TREE_COLUMNS> {
  length: number;
  /** Node of each row of api/rows; -1 for rows without a node. */
  leaf: Int32Array;
}

/** Read the response of api/tree. */
export function readForest(tables: Tables): Forest {
  return { ...tables.table("tree").read(TREE_COLUMNS), leaf: tables.table("leaf").i32("node") };
}
