import { formatBytes } from "../../base/units";
import type { ComparedEntry } from "../../payload/generated/answers";
import type { Change } from "../../payload/generated/constants";
import { ROLES } from "../../payload/generated/constants";
import { formatCsv } from "../../base/csv";
import type { Search } from "../../base/search";
import { parseFilters } from "../table/table_filter";

export type EntryKey = "change" | "bytes_a" | "bytes_b" | "delta" | "role" | "shape" | "site" | "source";

export interface EntrySort {
  key: EntryKey;
  descending: boolean;
}

export const CHANGE_LABELS: Record<Change, string> = {
  only_a: "only in A",
  only_b: "only in B",
  grown: "grown",
  shrunk: "shrunk",
  same: "unchanged",
};

export function delta({ bytes_a, bytes_b }: ComparedEntry): number {
  return bytes_b - bytes_a;
}

/** Format bytes with their sign: "+1.68 MiB". */
export function formatSigned(bytes: number): string {
  return `${bytes > 0 ? "+" : ""}${formatBytes(bytes)}`;
}

/**
 * Return entries of the wanted kinds (all, if none is selected) that match the search and whose change
 * matches the size filter.
 */
export function filterEntries(
  entries: readonly ComparedEntry[],
  wanted: ReadonlySet<Change>,
  search: Search,
  size: string,
): { entries: ComparedEntry[]; errors: string[] } {
  const { text, matchesSize, errors } = parseFilters(search, size);
  const kept = entries.filter(
    (entry) =>
      (wanted.size === 0 || wanted.has(entry.change)) &&
      matchesSize(Math.abs(delta(entry))) &&
      (text.empty || entryTexts(entry).some((value) => text.matches(value))),
  );
  return { entries: kept, errors };
}

/** Return the texts of an entry that a search looks at. */
export function entryTexts(entry: ComparedEntry): string[] {
  const { site, name, op, op_name, source, shape, role } = entry;
  return [site, name, op, op_name, source, shape, ROLES[role]];
}

/** Sort entries. Changes sort by absolute size. */
export function sortEntries(
  entries: readonly ComparedEntry[],
  { key, descending }: EntrySort,
): ComparedEntry[] {
  const way = descending ? -1 : 1;
  const value = (entry: ComparedEntry): number | string => {
    if (key === "delta") return Math.abs(delta(entry));
    if (key === "role") return ROLES[entry.role];
    if (key === "change") return CHANGE_LABELS[entry.change];
    return entry[key];
  };
  return entries.slice().sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    return (
      way *
      (typeof x === "number" && typeof y === "number"
        ? x - y
        : `${x}`.localeCompare(`${y}`, "en", { numeric: true }))
    );
  });
}

export function entriesCsv(entries: readonly ComparedEntry[]): string {
  const headings = [
    "change",
    "bytes_a",
    "bytes_b",
    "change_bytes",
    "allocations_a",
    "allocations_b",
    "category",
    "shape",
    "shape_before",
    "site",
    "source",
  ];
  return formatCsv(
    headings,
    entries.map((entry) => [
      CHANGE_LABELS[entry.change],
      entry.bytes_a,
      entry.bytes_b,
      delta(entry),
      entry.allocations_a,
      entry.allocations_b,
      ROLES[entry.role],
      entry.shape,
      entry.shape_before,
      entry.site,
      entry.source,
    ]),
  );
}
