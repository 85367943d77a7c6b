import { compileSearch } from "../../base/search";
import type { AdviceById, OverviewRow } from "../../payload/responses/overview";
import { recordingName } from "../../payload/responses/overview";
import { ROLES } from "../../payload/recording/roles";
import { formatCsv } from "../../base/csv";
import { parseSizeFilter } from "../table/table_filter";

export type OverviewKey =
  "name" | "memory" | "host" | "peak" | "needed" | "capacity" | "left" | "role" | "part" | "advice";

/** Null is the order in which they come: the tightest first. */
export type OverviewSort = { key: OverviewKey; descending: boolean } | null;

const collator = new Intl.Collator("en", { numeric: true });

/** Rows with the searched text in any of their texts and with a peak of the size asked for. */
export function filterOverview(
  rows: readonly OverviewRow[],
  search: string,
  size: string,
  advice: AdviceById,
): { rows: OverviewRow[]; errors: string[] } {
  const errors: string[] = [];
  const sizeTest = parseSizeFilter(size);
  if (sizeTest === null) errors.push(`“${size.trim()}” is no size; write >1MiB, <=512 KiB or 1MiB..2GiB.`);
  const found = compileSearch(search);
  if (found.error !== null) errors.push(`Looked for as plain text, since ${found.error.toLowerCase()}.`);
  const matches = (row: OverviewRow): boolean =>
    [
      row.title,
      row.memory,
      row.host,
      roleText(row),
      row.part?.name ?? "",
      advice.get(row.id)?.title ?? "",
    ].some((text) => found.matches(text));
  return {
    rows: rows.filter(
      (row) => (sizeTest === null || sizeTest(row.peak_bytes)) && (found.empty || matches(row)),
    ),
    errors,
  };
}

/** What is unknown comes last, whichever way the sort runs; equal rows stay in the order they came in. */
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

/** The rows as CSV, sizes in bytes; empty where unknown. */
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
