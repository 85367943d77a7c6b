import type { CoResidency, OverviewRow } from "../../payload/generated/answers";

/** A row, and all rows that are equal to it, itself included, in order of their hosts. */
export interface FoldedRow {
  row: OverviewRow;
  equal: OverviewRow[];
}

/** Fold rows of programs that differ only in their host, in the order of the first of each. */
export function foldHosts(rows: readonly OverviewRow[]): FoldedRow[] {
  const folded = new Map<string, FoldedRow>();
  for (const row of rows) {
    const key = row.kind === "program" ? contents(row) : row.id;
    const same = folded.get(key);
    if (same === undefined) folded.set(key, { row, equal: [row] });
    else same.equal.push(row);
  }
  for (const { equal } of folded.values()) equal.sort((x, y) => byNumber(x.host, y.host));
  return [...folded.values()];
}

/** Programs that share a memory, and all hosts on which it is shared equally. */
export interface FoldedPlace {
  place: CoResidency;
  hosts: string[];
}

/** Fold memories with equal programs on several hosts, in the order of the first of each. */
export function foldPlaces(places: readonly CoResidency[]): FoldedPlace[] {
  const folded = new Map<string, FoldedPlace>();
  for (const place of places) {
    const programs = place.programs.map((program) => ({ ...program, id: "" }));
    const measured = place.measured.map((allocator) => ({ ...allocator, id: "" }));
    const key = JSON.stringify({ ...place, host: "", programs, measured });
    const same = folded.get(key);
    if (same === undefined) folded.set(key, { place, hosts: [place.host] });
    else same.hosts.push(place.host);
  }
  for (const { hosts } of folded.values()) hosts.sort(byNumber);
  return [...folded.values()];
}

const byNumber = new Intl.Collator("en", { numeric: true }).compare;

/** Everything of a row that is not the host's own name. */
function contents(row: OverviewRow): string {
  return JSON.stringify({ ...row, id: "", host: "" });
}
