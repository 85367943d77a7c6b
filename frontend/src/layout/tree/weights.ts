import type { Program } from "../../payload/recording/program";
import type { Rows } from "../../payload/recording/rows";
import { ROLES } from "../../payload/recording/roles";
import type { Tree } from "./tree";
import { rowLifetime } from "../table/row_order";

/** What each node of a tree weighs: one value per node. */
export interface Weights {
  /** With everything below it. */
  total: Float64Array;
  /** Of the rows at the node itself. */
  self: Float64Array;
  /** Rows at and below it. */
  count: Int32Array;
  /** Role that most of its weight has; 0 where none is known. */
  role: Uint8Array;
}

/**
 * Weighs a tree for some rows: `column` has the weight of every row of the recording, and `rest` is that of what no
 * row explains. So the weight of node 0 is that of all rows and the rest. Takes one step per row and a few per node.
 */
export function weighTree(
  tree: Tree,
  rows: Rows,
  live: Uint32Array,
  column: Float64Array,
  rest: number,
): Weights {
  const { length, parent, leaf } = tree;
  const self = new Float64Array(length);
  const count = new Int32Array(length);
  const kinds = roleNumbers(rows, live);
  const shares = new Float64Array(length * kinds.roles.length);
  for (const row of live) {
    const node = leaf[row];
    self[node] += column[row];
    count[node] += 1;
    shares[node * kinds.roles.length + kinds.number[rows.role[row]]] += column[row];
  }
  self[tree.rest] += rest;
  const total = self.slice();
  // Children come after their parents, so that from the last to the first each one is whole when it is added.
  for (let node = length - 1; node > 0; node--) {
    total[parent[node]] += total[node];
    count[parent[node]] += count[node];
  }
  return { total, self, count, role: mainRoles(tree, shares, kinds.roles) };
}

/** The roles there are, and the place of each among them: most recordings have few of all roles. */
function roleNumbers(rows: Rows, live: Uint32Array): { roles: number[]; number: Uint8Array } {
  const number = new Uint8Array(256).fill(255);
  const roles: number[] = [];
  for (const row of live) {
    const role = rows.role[row];
    if (number[role] === 255) number[role] = roles.push(role) - 1;
  }
  return { roles, number };
}

function mainRoles({ length, parent }: Tree, shares: Float64Array, roles: number[]): Uint8Array {
  const kinds = roles.length;
  const main = new Uint8Array(length);
  for (let node = length - 1; node >= 0; node--) {
    let most = 0;
    for (let kind = 0; kind < kinds; kind++) {
      const share = shares[node * kinds + kind];
      if (node > 0) shares[parent[node] * kinds + kind] += share;
      if (share <= most) continue;
      most = share;
      main[node] = roles[kind] < ROLES.length ? roles[kind] : 0;
    }
  }
  return main;
}

/**
 * Bytes of each row times how long it is held: in byte-nanoseconds where there is a clock, else in bytes times
 * positions. What is not freed is held to the end.
 */
export function byteTime(rows: Rows, program: Program): Float64Array {
  const { length, time_ns } = program;
  return rows.charge.map((charge, row) => {
    if (time_ns !== null) return charge * rowLifetime(rows, row, time_ns);
    return charge * (Math.min(rows.end[row], length) - Math.max(rows.start[row], 0));
  });
}
