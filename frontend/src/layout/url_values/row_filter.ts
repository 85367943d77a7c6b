import type { Classification } from "../../payload/generated/constants";
import { CLASSIFICATIONS, ROLES } from "../../payload/generated/constants";

/** First and last number, both included. */
export type RowRange = readonly [number, number];

/** A filter that applies to all charts: the rows below a node of a tree, those of some roles, or rows by number. */
export type RowFilter =
  | { kind: "node"; by: Classification; merge: boolean; invert: boolean; path: string }
  | { kind: "roles"; roles: number[] }
  | { kind: "rows"; ranges: RowRange[] };

/**
 * Format a filter for the state and the URL: "model:params/layer_3", "stack.merged.inverted:f/g",
 * "roles:gradient,activation", "rows:3,7-12".
 */
export function writeFilter(filter: RowFilter): string {
  if (filter.kind === "rows") return `rows:${filter.ranges.map(writeRange).join(",")}`;
  if (filter.kind === "roles") return `roles:${filter.roles.map((role) => ROLES[role]).join(",")}`;
  const { by, merge, invert, path } = filter;
  return `${by}${merge ? ".merged" : ""}${invert ? ".inverted" : ""}:${path}`;
}

/** Parse a filter; null if the text is invalid. */
export function readFilter(text: string): RowFilter | null {
  const colon = text.indexOf(":");
  const [first, ...flags] = text.slice(0, Math.max(colon, 0)).split(".");
  const rest = text.slice(colon + 1);
  if (first === "rows") {
    const ranges = rest.split(",").flatMap(readRange);
    return ranges.length === 0 ? null : { kind: "rows", ranges };
  }
  if (first === "roles") {
    const roles = [...ROLES.keys()].filter((role) => rest.split(",").includes(ROLES[role]));
    return roles.length === 0 ? null : { kind: "roles", roles };
  }
  const by = CLASSIFICATIONS.find((known) => known === first);
  if (by === undefined || rest === "") return null;
  return {
    kind: "node",
    by,
    merge: flags.includes("merged"),
    invert: flags.includes("inverted"),
    path: rest,
  };
}

/** Return the filter's text after a click on a role in a legend: the first click leaves only it, others add and remove. */
export function toggleRole(text: string, role: number): string {
  const filter = readFilter(text);
  const shown = filter?.kind === "roles" ? filter.roles : [];
  const roles = [...ROLES.keys()].filter((known) => shown.includes(known) !== (known === role));
  return roles.length === 0 ? "" : writeFilter({ kind: "roles", roles });
}

function writeRange([first, last]: RowRange): string {
  return first === last ? String(first) : `${first}-${last}`;
}

function readRange(text: string): RowRange[] {
  if (!/^\d+(-\d+)?$/.test(text)) return [];
  const [first, last = first] = text.split("-").map(Number);
  return [[first, last]];
}

/** Return 1 for each of the rows 0..count-1 in any of the ranges. */
export function maskOf(ranges: readonly RowRange[], count: number): Uint8Array {
  const mask = new Uint8Array(count);
  for (const [first, last] of ranges) mask.fill(1, Math.min(first, count), Math.min(last + 1, count));
  return mask;
}
