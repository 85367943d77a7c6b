import { byNumber, groupBy } from "../base/sort";
import type { CoResidency, OverviewRow } from "../payload/generated/answers";

/** A row, and in order of their hosts, all rows that are folded into it, itself included. */
export type FoldedRow = OverviewRow & { equal?: readonly OverviewRow[] };

/** Fold rows of programs that differ only in their host, in the order of the first of each. */
export function foldHosts(rows: readonly OverviewRow[]): FoldedRow[] {
  const contents = (row: OverviewRow): string => JSON.stringify({ ...row, id: "", host: "" });
  const groups = groupBy(rows, (row) => (row.kind === "program" ? contents(row) : row.id));
  return groups.map((equal) => ({
    ...equal[0],
    equal: equal.slice().sort((x, y) => byNumber(x.host, y.host)),
  }));
}

/** Programs that share a memory, and all hosts on which it is shared equally. */
interface FoldedPlace {
  place: CoResidency;
  hosts: string[];
}

/** Fold memories with equal programs on several hosts, in the order of the first of each. */
export function foldPlaces(places: readonly CoResidency[]): FoldedPlace[] {
  const withoutId = (each: object): object => ({ ...each, id: "" });
  const groups = groupBy(places, (place) => {
    const [programs, measured] = [place.programs.map(withoutId), place.measured.map(withoutId)];
    return JSON.stringify({ ...place, host: "", programs, measured });
  });
  return groups.map((equal) => ({ place: equal[0], hosts: equal.map(({ host }) => host).sort(byNumber) }));
}
