import { ROLES } from "../../payload/generated/constants";
import type { Program } from "../../payload/recording/recording";
import { rowLifetime, type Rows } from "../../payload/recording/rows";
import type { Tree } from "./tree";

/** Weights of a tree: one value for each node. */
export interface Weights {
  /** Weight of the node's subtree. */
  total: Float64Array;
  /** Weight of the rows at the node itself. */
  self: Float64Array;
  /** Number of rows in the subtree. */
  count: Int32Array;
  /** Role with the largest weight in the subtree; 0 if unknown. */
  role: Uint8Array;
}

/**
 * Compute the weights of a tree for some rows. `column` contains the weight of every row of the recording;
 * `rest` is the weight of bytes that no row explains. Node 0 weighs the sum of all. Takes one step for each
 * row and a few for each node.
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
  // Children follow their parents, so iterating backwards completes each node before it is added to its
  // parent.
  for (let node = length - 1; node > 0; node--) {
    total[parent[node]] += total[node];
    count[parent[node]] += count[node];
  }
  return { total, self, count, role: mainRoles(tree, shares, kinds.roles) };
}

/** Return the roles that occur, and the index of each: most recordings have only a few roles. */
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
 * Return bytes times lifetime of each row: in byte-nanoseconds with a clock, otherwise in bytes times
 * positions. Rows that are never freed live until the end.
 */
export function byteTime(rows: Rows, program: Program): Float64Array {
  const { length, time_ns } = program;
  return rows.charge.map((charge, row) => {
    if (time_ns !== null) return charge * rowLifetime(rows, row, time_ns);
    return charge * (Math.min(rows.end[row], length) - Math.max(rows.start[row], 0));
  });
}
