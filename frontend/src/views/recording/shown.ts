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
  numberOf(index: number): number;
  /** -1 for a row that is not among them. */
  indexOf(row: number | null): number;
}

export function shownRows(view: FirstView, everything: Everything | null): Shown {
  if (everything !== null) {
    const { rows } = everything;
    return {
      rows,
      complete: true,
      regions: everything.regions,
      numberOf: (index) => index,
      indexOf: (row) => (row !== null && row < rows.length ? row : -1),
    };
  }
  return {
    rows: view.rows,
    complete: false,
    regions: null,
    numberOf: (index) => view.row[index],
    indexOf: (row) => (row === null ? -1 : view.row.indexOf(row)),
  };
}
