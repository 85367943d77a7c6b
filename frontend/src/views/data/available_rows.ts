import type { Addresses } from "../../payload/recording/addresses";
import type { RecordingData, FirstView } from "../../payload/recording/recording";
import type { Regions } from "../../payload/recording/regions";
import type { Rows } from "../../payload/recording/rows";

/**
 * The rows a chart may draw: all of them, or until these have come, the largest ones at the peak. Charts work on
 * indices into `rows`; the state speaks of row numbers.
 */
export interface AvailableRows {
  rows: Rows;
  complete: boolean;
  /** Null until all rows have loaded. */
  regions: Regions | null;
  places: Addresses;
  numberOf(index: number): number;
  /** Index of a row number; -1 if the row is not loaded. */
  indexOf(row: number | null): number;
}

export function availableRows(view: FirstView, everything: RecordingData | null): AvailableRows {
  if (everything !== null) return allRows(everything);
  return {
    rows: view.rows,
    complete: false,
    regions: null,
    places: view.addresses,
    numberOf: (index) => view.row[index],
    indexOf: (row) => (row === null ? -1 : view.row.indexOf(row)),
  };
}

export function allRows({ rows, regions, addresses }: RecordingData): AvailableRows {
  return {
    rows,
    complete: true,
    regions,
    places: addresses,
    numberOf: (index) => index,
    indexOf: (row) => (row !== null && row < rows.length ? row : -1),
  };
}
