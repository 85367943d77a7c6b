import type { Places } from "../../payload/places";
import type { Everything, FirstView, Regions, Rows } from "../../payload/recording";

/**
 * The rows a chart may draw: all of them, or until these have come, the largest ones at the peak. Charts work on
 * indices into `rows`; the state speaks of row numbers.
 */
export interface Shown {
  rows: Rows;
  complete: boolean;
  /** Null until they have come. */
  regions: Regions | null;
  places: Places;
  numberOf(index: number): number;
  /** -1 for a row that is not among them. */
  indexOf(row: number | null): number;
}

export function shownRows(view: FirstView, everything: Everything | null): Shown {
  if (everything !== null) return allRows(everything);
  return {
    rows: view.rows,
    complete: false,
    regions: null,
    places: view.places,
    numberOf: (index) => view.row[index],
    indexOf: (row) => (row === null ? -1 : view.row.indexOf(row)),
  };
}

export function allRows({ rows, regions, places }: Everything): Shown {
  return {
    rows,
    complete: true,
    regions,
    places,
    numberOf: (index) => index,
    indexOf: (row) => (row !== null && row < rows.length ? row : -1),
  };
}
