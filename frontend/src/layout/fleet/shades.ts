import { formatBytes, formatShare } from "../../base/units";
import type { FleetDevices } from "../../payload/responses/fleet";

/** What the colors of cells stand for. */
export type ShadeBy = "median" | "capacity";

/** Smallest distance from the median that has the full color: a healthy fleet is not colored by its noise. */
const MIN_DISTANCE = 0.05;
/** Shares of capacity are drawn from a multiple of this on. */
const SHARE_STEP = 0.1;

/** Shades of devices from -1, far below, to 1, far above or full; NaN where the capacity is unknown. */
export interface Shades {
  /** By row of the devices; rows that are not drawn have 0. */
  readonly shade: Float64Array;
  /** The colors' range from left to right, with the text of each tick. */
  readonly from: number;
  readonly ticks: readonly { at: number; label: string }[];
}

/** Return the shades of the devices with these rows. `median`: of their peaks, in bytes. */
export function shadesOf(
  devices: FleetDevices,
  rows: ArrayLike<number>,
  median: number,
  by: ShadeBy,
): Shades {
  return by === "median" ? byDistance(devices, rows, median) : byCapacity(devices, rows);
}

function byDistance({ fromMedian, length }: FleetDevices, rows: ArrayLike<number>, median: number): Shades {
  let top = Math.max(MIN_DISTANCE * median, 1);
  for (let at = 0; at < rows.length; at++) top = Math.max(top, Math.abs(fromMedian[rows[at]]));
  const shade = new Float64Array(length);
  for (let at = 0; at < rows.length; at++) shade[rows[at]] = fromMedian[rows[at]] / top;
  const ticks = [
    { at: -1, label: formatBytes(-top) },
    { at: 0, label: "median" },
    { at: 1, label: `+${formatBytes(top)}` },
  ];
  return { shade, from: -1, ticks };
}

function byCapacity({ peak, capacity, length }: FleetDevices, rows: ArrayLike<number>): Shades {
  const shade = new Float64Array(length);
  let [low, high] = [1, 1];
  for (let at = 0; at < rows.length; at++) {
    const row = rows[at];
    shade[row] = capacity[row] > 0 ? peak[row] / capacity[row] : NaN;
    if (shade[row] < low) low = shade[row];
    if (shade[row] > high) high = shade[row];
  }
  low = Math.min(Math.floor(low / SHARE_STEP) * SHARE_STEP, high - SHARE_STEP);
  for (let at = 0; at < rows.length; at++) shade[rows[at]] = (shade[rows[at]] - low) / (high - low);
  const ticks = [
    { at: 0, label: formatShare(low, 1) },
    { at: 1, label: formatShare(high, 1) },
  ];
  return { shade, from: 0, ticks };
}

/** Return whether any of the devices has a known capacity. */
export function hasCapacity({ capacity }: FleetDevices, rows: ArrayLike<number>): boolean {
  return Array.from(rows).some((row) => capacity[row] > 0);
}
