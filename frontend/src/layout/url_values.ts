import { type Classification, CLASSIFICATIONS, ROLES } from "../payload/generated/constants";

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
  if (filter.kind === "rows") {
    const ranges = filter.ranges.map(([first, last]) => (first === last ? first : `${first}-${last}`));
    return `rows:${ranges.join(",")}`;
  }
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

/** Return the filter after a click on a role in a legend: the first click leaves only it, others add and remove. */
export function toggleRole(text: string, role: number): string {
  const filter = readFilter(text);
  const shown = filter?.kind === "roles" ? filter.roles : [];
  const roles = [...ROLES.keys()].filter((known) => shown.includes(known) !== (known === role));
  return roles.length === 0 ? "" : writeFilter({ kind: "roles", roles });
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

/**
 * Groups of a table, or nodes of a tree, whose expansion differs from the default. In the URL, their marks
 * are joined by dots, newest last.
 */

/**
 * Maximum length in the URL: about forty groups. With more, the whole URL would exceed the limits of chats
 * and issue trackers, some of which cut links at 2,000 characters.
 */
const MAX_URL_LENGTH = 600;

export function readExpanded(text: string): ReadonlySet<string> {
  return new Set(text.split(".").filter((mark) => mark !== ""));
}

/** Toggle one mark. */
export function toggleExpanded(text: string, mark: string): string {
  const marks = readExpanded(text);
  const others = [...marks].filter((other) => other !== mark);
  return (marks.has(mark) ? others : [...others, mark]).join(".");
}

/** Return the newest marks that fit into the URL. */
export function truncateForUrl(text: string): string {
  if (text.length <= MAX_URL_LENGTH) return text;
  const newest = text.slice(-MAX_URL_LENGTH);
  return newest.slice(newest.indexOf(".") + 1);
}

/** Return a short hash of a label, the same in every file and session: 32-bit FNV-1a in base 36. */
export function hashLabel(label: string): string {
  let hash = 0x811c9dc5;
  for (let i = 0; i < label.length; i++) hash = Math.imul(hash ^ label.charCodeAt(i), 0x01000193);
  return (hash >>> 0).toString(36);
}

/** Sort column and direction of a table. */
export interface Sorting<Key extends string = string> {
  key: Key;
  descending: boolean;
}

/** Parse a sorting from the URL; "-size" sorts descending. Return `first` if the table has no such column. */
export function readSorting<Key extends string>(
  text: string,
  keys: readonly Key[],
  first: Sorting<Key>,
): Sorting<Key> {
  const descending = text.startsWith("-");
  const key = keys.find((known) => known === text.slice(descending ? 1 : 0));
  return key === undefined ? first : { key, descending };
}

export function writeSorting({ key, descending }: Sorting): string {
  return descending ? `-${key}` : key;
}
