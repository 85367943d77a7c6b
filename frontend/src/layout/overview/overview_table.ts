import type { OverviewRow } from "../../payload/generated/answers";
import type { AdviceById } from "../../payload/responses/overview";
import { recordingName } from "../../payload/responses/overview";
import { ROLES } from "../../payload/generated/constants";
import { formatCsv } from "../../base/csv";
import type { Search } from "../../base/search";
import { parseFilters } from "../table/table_filter";

export type OverviewKey =
  "name" | "memory" | "host" | "peak" | "needed" | "capacity" | "left" | "role" | "part" | "advice";

/** Null keeps the given order: least headroom first. */
export type OverviewSort = { key: OverviewKey; descending: boolean } | null;

const collator = new Intl.Collator("en", { numeric: true });

/** Return rows with the search in any of their texts and a peak that matches the size filter. */
export function filterOverview(
  rows: readonly OverviewRow[],
  search: Search,
  size: string,
  advice: AdviceById,
): { rows: OverviewRow[]; errors: string[] } {
  const { text, matchesSize, errors } = parseFilters(search, size);
  const matches = (row: OverviewRow): boolean =>
    overviewTexts(row, advice).some((value) => text.matches(value));
  return {
    rows: rows.filter((row) => matchesSize(row.peak_bytes) && (text.empty || matches(row))),
    errors,
  };
}

/** Return the texts of a row that a search looks at. */
export function overviewTexts(row: OverviewRow, advice: AdviceById): string[] {
  const named = [row.title, row.memory, row.host, roleText(row)];
  return [...named, row.part?.name ?? "", advice.get(row.id)?.title ?? ""];
}

/** Sort rows. Unknown values come last in both directions; equal rows keep their order. */
export function sortOverview(
  rows: readonly OverviewRow[],
  sort: OverviewSort,
  advice: AdviceById,
): OverviewRow[] {
  if (sort === null) return rows.slice();
  const { key, descending } = sort;
  const sign = descending ? -1 : 1;
  return rows.slice().sort((a, b) => {
    const [x, y] = [valueOf(a, key, advice), valueOf(b, key, advice)];
    if (x === null || y === null) return Number(x === null) - Number(y === null);
    return sign * (typeof x === "number" && typeof y === "number" ? x - y : collator.compare(`${x}`, `${y}`));
  });
}

function valueOf(row: OverviewRow, key: OverviewKey, advice: AdviceById): number | string | null {
  switch (key) {
    case "name":
      return recordingName(row);
    case "memory":
    case "host":
      return row[key];
    case "peak":
      return row.peak_bytes;
    case "needed":
      return row.needed_bytes;
    case "capacity":
      return row.capacity_bytes;
    case "left":
      return row.headroom_bytes;
    case "role":
      return row.role === null ? null : roleText(row);
    case "part":
      return row.part?.share ?? null;
    case "advice":
      return advice.get(row.id)?.saving_bytes ?? null;
  }
}

export function roleText({ role }: OverviewRow): string {
  return role === null ? "" : ROLES[role.role];
}

const HEADINGS = [
  "recording",
  "memory",
  "host",
  "kind",
  "peak_bytes",
  "needed_bytes",
  "capacity_bytes",
  "left_bytes",
  "largest_category",
  "largest_category_bytes",
  "largest_part",
  "largest_part_bytes",
  "advice",
  "saving_bytes",
];

/** Format the rows as CSV. Sizes are in bytes and empty if unknown. */
export function overviewCsv(rows: readonly OverviewRow[], advice: AdviceById): string {
  const lines = rows.map((row) => {
    const top = advice.get(row.id);
    return [
      row.title,
      row.memory,
      row.host,
      row.kind,
      row.peak_bytes,
      row.needed_bytes,
      row.capacity_bytes ?? "",
      row.headroom_bytes ?? "",
      roleText(row),
      row.role?.bytes ?? "",
      row.part?.name ?? "",
      row.part?.bytes ?? "",
      top?.title ?? "",
      top?.saving_bytes ?? "",
    ];
  });
  return formatCsv(HEADINGS, lines);
}
