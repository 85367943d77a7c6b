import type { Tables } from "../tables/tables";
import type { TextColumn } from "../tables/text_column";

/** Trees over all rows of a recording. Nodes are in preorder: a node comes before its descendants. */
export interface Forest {
  length: number;
  label: TextColumn;
  /** -1 for the root of a tree. */
  parent: Int32Array;
  /** The subtree of node i is nodes [i, end[i]). */
  end: Int32Array;
  /** Number of nodes merged into this one; 1 if none were merged. */
  merged: Int32Array;
  /** 1 for a frame of a framework or runtime. */
  framework: Uint8Array;
  /** Node of each row of api/rows; -1 for rows without a node. */
  leaf: Int32Array;
}

/** Read the response of api/tree. */
export function readForest(tables: Tables): Forest {
  const tree = tables.table("tree");
  return {
    length: tree.length,
    label: tree.text("label"),
    parent: tree.i32("parent"),
    end: tree.i32("end"),
    merged: tree.i32("merged"),
    framework: tree.u8("framework"),
    leaf: tables.table("leaf").i32("node"),
  };
}
