import { formatCsv } from "../../base/csv";
import type { Search } from "../../base/search";
import type { FleetDevices } from "../../payload/responses/fleet";
import { parseFilters } from "../table/table_filter";

export type DeviceKey = "tick" | "host" | "device" | "peak" | "share" | "distance" | "cause" | "growth";

/** Null keeps the given order: farthest from the median first. */
export type DeviceSort = { key: DeviceKey; descending: boolean } | null;

/** Return 1 for each peak outside a range, `to` excluded; a range of null contains all. */
export function outside(peak: Float64Array, range: readonly [number, number] | null): Uint8Array {
  return Uint8Array.from(peak, (bytes) =>
    range === null || (bytes >= range[0] && bytes < range[1]) ? 0 : 1,
  );
}

/** Return the rows to list, farthest from the median first: those in the range, and only outliers unless `all`. */
export function listedRows(
  { outlier, fromMedian }: FleetDevices,
  rows: Uint32Array,
  dimmed: Uint8Array,
  all: boolean,
): Uint32Array {
  const listed = rows.filter((row) => dimmed[row] === 0 && (all || outlier[row] === 1));
  return listed.sort((a, b) => Math.abs(fromMedian[b]) - Math.abs(fromMedian[a]) || a - b);
}

/** Return the texts of a device that a search looks at. */
export function deviceTexts({ host, device, run, cause, growth }: FleetDevices, row: number): string[] {
  return [host[row], device[row], run[row], cause[row], growth[row]];
}

/** Return the rows with the search in any of their texts and a peak that matches the size filter. */
export function filterDevices(
  devices: FleetDevices,
  rows: Uint32Array,
  search: Search,
  size: string,
): { rows: Uint32Array; errors: string[] } {
  const { text, matchesSize, errors } = parseFilters(search, size);
  const matches = (row: number): boolean =>
    text.empty || deviceTexts(devices, row).some((value) => text.matches(value));
  return { rows: rows.filter((row) => matchesSize(devices.peak[row]) && matches(row)), errors };
}

const collator = new Intl.Collator("en", { numeric: true });

/** Sort rows. Empty texts and unknown capacities come last in both directions; equal rows keep their order. */
export function sortDevices(devices: FleetDevices, rows: Uint32Array, sort: DeviceSort): Uint32Array {
  if (sort === null) return rows;
  const sign = sort.descending ? -1 : 1;
  const value = VALUES[sort.key];
  return rows.slice().sort((a, b) => {
    const [x, y] = [value(devices, a), value(devices, b)];
    if (x === "" || y === "") return Number(x === "") - Number(y === "");
    return sign * (typeof x === "number" && typeof y === "number" ? x - y : collator.compare(`${x}`, `${y}`));
  });
}

/** The empty text is an unknown value. */
const VALUES: Record<DeviceKey, (devices: FleetDevices, row: number) => number | string> = {
  tick: () => 0,
  host: ({ host }, row) => host[row],
  device: ({ device }, row) => device[row],
  peak: ({ peak }, row) => peak[row],
  share: ({ peak, capacity }, row) => (capacity[row] > 0 ? peak[row] / capacity[row] : ""),
  distance: ({ fromMedian }, row) => fromMedian[row],
  cause: ({ cause }, row) => cause[row],
  growth: ({ growth, growthBytes }, row) => (growth[row] === "" ? "" : growthBytes[row]),
};

const HEADINGS = [
  "host",
  "run",
  "device",
  "memory",
  "peak_bytes",
  "capacity_bytes",
  "from_median_bytes",
  "measured",
  "outlier",
  "cause",
  "growth",
  "growth_bytes",
  "growth_unit",
];

/** Format the rows as CSV. Sizes are in bytes and empty if unknown. */
export function devicesCsv(devices: FleetDevices, rows: Uint32Array): string {
  const lines = Array.from(rows, (row) => [
    devices.host[row],
    devices.run[row],
    devices.device[row],
    devices.memory[row],
    devices.peak[row],
    devices.capacity[row] > 0 ? devices.capacity[row] : "",
    devices.fromMedian[row],
    devices.measured[row],
    devices.outlier[row],
    devices.cause[row],
    devices.growth[row],
    devices.growth[row] === "" ? "" : devices.growthBytes[row],
    devices.growthUnit[row],
  ]);
  return formatCsv(HEADINGS, lines);
}
