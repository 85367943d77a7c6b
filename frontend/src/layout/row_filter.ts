import type { By } from "../payload/forest";
import { BYS } from "../payload/forest";

/** Rows that all charts are confined to: those below a node of a tree, or those with these numbers. */
export type RowFilter =
  { kind: "node"; by: By; merge: boolean; invert: boolean; path: string } | { kind: "rows"; rows: number[] };

/** As the state and the URL have it: "model:params/layer_3", "stack.merged.inverted:f/g", "rows:3,7-12". */
export function writeFilter(filter: RowFilter): string {
  if (filter.kind === "rows") return `rows:${writeRanges(filter.rows)}`;
  const { by, merge, invert, path } = filter;
  return `${by}${merge ? ".merged" : ""}${invert ? ".inverted" : ""}:${path}`;
}

/** Null for what does not read as a filter. */
export function readFilter(text: string): RowFilter | null {
  const colon = text.indexOf(":");
  const [first, ...flags] = text.slice(0, Math.max(colon, 0)).split(".");
  const rest = text.slice(colon + 1);
  if (first === "rows") {
    const rows = readRanges(rest);
    return rows.length === 0 ? null : { kind: "rows", rows };
  }
  const by = BYS.find((known) => known === first);
  if (by === undefined || rest === "") return null;
  return {
    kind: "node",
    by,
    merge: flags.includes("merged"),
    invert: flags.includes("inverted"),
    path: rest,
  };
}

function writeRanges(rows: readonly number[]): string {
  const sorted = [...new Set(rows)].sort((a, b) => a - b);
  const ranges: string[] = [];
  for (let i = 0; i < sorted.length;) {
    let last = i;
    while (sorted[last + 1] === sorted[last] + 1) last += 1;
    ranges.push(last === i ? String(sorted[i]) : `${sorted[i]}-${sorted[last]}`);
    i = last + 1;
  }
  return ranges.join(",");
}

/** A link may name ranges of any length; more rows than this no page of ours wrote. */
const MOST_ROWS = 100_000;

function readRanges(text: string): number[] {
  const rows: number[] = [];
  for (const part of text.split(",")) {
    if (!/^\d+(-\d+)?$/.test(part)) continue;
    const [from, to = from] = part.split("-").map(Number);
    for (let row = from; row <= to && rows.length < MOST_ROWS; row++) rows.push(row);
  }
  return rows;
}
