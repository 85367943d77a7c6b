import { formatBytes, formatShare } from "../../base/units";
import type { FleetDevices, FleetHost } from "../../payload/responses/fleet";

/** Distance from one cell to the next, in CSS pixels. */
const MAX_PITCH = 24;
const MIN_PITCH = 3;
/** Room for the cells, and the size of the largest. */
const IN_PAGE = { height: 400, pitch: MAX_PITCH };
/** Pixels between two hosts of a line, if hosts have several devices. */
const HOST_GAP = 4;
/** Up to this number, each host has a line with its name. */
const FEW_HOSTS = 8;

/**
 * A cell for each device, hosts in numeric order from left to right, line by line. A host without a device, such as a
 * missing one, is one wide cell. Sizes are in CSS pixels.
 */
export interface HeatMap {
  readonly width: number;
  readonly height: number;
  /** Height of a cell with the gap below it. */
  readonly pitch: number;
  readonly count: number;
  /** By cell: the row of the device, -1 without one; and the row of its host. */
  readonly device: Int32Array;
  readonly host: Int32Array;
  readonly left: Float64Array;
  readonly top: Float64Array;
  readonly wide: Float64Array;
  /** First host of each line. */
  readonly lines: readonly { host: number; top: number }[];
}

/**
 * Lay out the devices with these rows, in order of their hosts. `gutter`: room for names on the left. `most`: height
 * in which all cells are visible if they are not too small, and the largest cell.
 */
export function heatMap(
  hosts: readonly FleetHost[],
  devices: FleetDevices,
  rows: ArrayLike<number>,
  width: number,
  gutter: number,
  most = IN_PAGE,
): HeatMap {
  const ofHost = devicesByHost(hosts, devices, rows);
  const each = Math.max(...ofHost.map((found) => found.length), 1);
  const gap = each > 1 ? HOST_GAP : 0;
  const { pitch, perLine } = grid(hosts.length, each, gap, width - gutter, most);
  const count = ofHost.reduce((sum, found) => sum + Math.max(found.length, 1), 0);
  const map = {
    width,
    height: Math.ceil(hosts.length / perLine) * pitch,
    pitch,
    count,
    device: new Int32Array(count).fill(-1),
    host: new Int32Array(count),
    left: new Float64Array(count),
    top: new Float64Array(count),
    wide: new Float64Array(count).fill(pitch),
    lines: [] as { host: number; top: number }[],
  };
  let cell = 0;
  ofHost.forEach((found, host) => {
    const left = gutter + (host % perLine) * (each * pitch + gap);
    const top = Math.floor(host / perLine) * pitch;
    if (host % perLine === 0) map.lines.push({ host, top });
    if (found.length === 0) map.wide[cell] = each * pitch;
    for (let at = 0; at < Math.max(found.length, 1); at++, cell++) {
      map.device[cell] = found.at(at) ?? -1;
      map.host[cell] = host;
      map.left[cell] = left + at * pitch;
      map.top[cell] = top;
    }
  });
  return map;
}

function devicesByHost(
  hosts: readonly FleetHost[],
  devices: FleetDevices,
  rows: ArrayLike<number>,
): number[][] {
  const place = new Map(hosts.map(({ host }, at) => [host, at]));
  const found = hosts.map((): number[] => []);
  for (let at = 0; at < rows.length; at++) found[place.get(devices.host[rows[at]]) ?? 0]?.push(rows[at]);
  return found;
}

/**
 * Return the number of hosts of a line, a power of two as in the shapes of pods, and the largest cells with which
 * all are visible at once. If there are too many even for the smallest cells, the picture grows downward.
 */
function grid(
  hosts: number,
  devices: number,
  gap: number,
  width: number,
  most: typeof IN_PAGE,
): { pitch: number; perLine: number } {
  const room = (perLine: number): number => Math.floor(((width + gap) / perLine - gap) / devices);
  if (hosts <= FEW_HOSTS) return { pitch: Math.min(Math.max(room(1), 1), most.pitch), perLine: 1 };
  let best = { pitch: 0, perLine: 1 };
  let widest = 1;
  for (let perLine = 1; perLine < 2 * hosts; perLine *= 2) {
    const high = Math.floor(most.height / Math.ceil(hosts / perLine));
    const pitch = Math.min(most.pitch, room(perLine), high);
    if (pitch >= best.pitch) best = { pitch, perLine };
    if (room(perLine) >= MIN_PITCH) widest = perLine;
  }
  if (best.pitch >= MIN_PITCH) return best;
  return { pitch: Math.min(Math.max(room(widest), 1), MIN_PITCH), perLine: widest };
}

/** Return the cell at a point; -1 for none. */
export function cellAt(map: HeatMap, x: number, y: number): number {
  for (let cell = 0; cell < map.count; cell++) {
    const [right, down] = [x - map.left[cell], y - map.top[cell]];
    if (right >= 0 && right < map.wide[cell] && down >= 0 && down < map.pitch) return cell;
  }
  return -1;
}

/** Return the cell to which an arrow key leads: the next along the hosts, or the nearest in the next line. */
export function cellBeside(map: HeatMap, from: number, key: string): number | null {
  const along = { ArrowRight: from + 1, ArrowLeft: from - 1, Home: 0, End: map.count - 1 }[key];
  if (along !== undefined) return Math.min(Math.max(along, 0), map.count - 1);
  const down = { ArrowDown: map.pitch, ArrowUp: -map.pitch }[key];
  if (down === undefined) return null;
  const center = (cell: number): number => map.left[cell] + map.wide[cell] / 2;
  let nearest = from;
  let distance = Infinity;
  for (let cell = 0; cell < map.count; cell++)
    if (map.top[cell] === map.top[from] + down && Math.abs(center(cell) - center(from)) < distance)
      [nearest, distance] = [cell, Math.abs(center(cell) - center(from))];
  return nearest;
}

/** Return the numbers by which names differ, or the names if they differ in more than a number. */
export function shortNames(names: readonly string[]): string[] {
  const [first = "", ...others] = names;
  if (others.length === 0) return names.slice();
  const common = (same: (name: string, at: number) => boolean): number => {
    let at = 0;
    while (at < first.length && others.every((name) => at < name.length && same(name, at))) at++;
    return at;
  };
  const beginning = common((name, at) => name[at] === first[at]);
  const start = first.slice(0, beginning).replace(/\d+$/, "").length;
  const ending = common((name, at) => name.at(-1 - at) === first.at(-1 - at));
  const end = first.slice(first.length - ending).replace(/^\d+/, "").length;
  const short = names.map((name) => name.slice(start, Math.max(name.length - end, start)));
  return short.every((name) => /^\d+$/.test(name)) ? short : names.slice();
}

/** The meaning of the cells' colors. */
export type ShadeBy = "median" | "capacity";

/** Without outliers, distances up to this share of the median, a choice, are pale, as they are noise. */
const MIN_DISTANCE = 0.05;
/** The scale of shares of capacity begins at a multiple of this. */
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

function byDistance(devices: FleetDevices, rows: ArrayLike<number>, median: number): Shades {
  const { from_median_bytes: distance, length } = devices;
  const below = fullDistance(devices, rows, median, -1);
  const above = fullDistance(devices, rows, median, 1);
  const shade = new Float64Array(length);
  for (let at = 0; at < rows.length; at++) {
    const row = rows[at];
    shade[row] = distance[row] / (distance[row] < 0 ? below : above);
  }
  const ticks = [
    { at: -1, label: formatBytes(-below) },
    { at: 0, label: "median" },
    { at: 1, label: `+${formatBytes(above)}` },
  ];
  return { shade, from: -1, ticks };
}

/** Return the distance on a side of the median that has the full color. An outlier above does not fade one below. */
function fullDistance(
  { from_median_bytes: distance, outlier }: FleetDevices,
  rows: ArrayLike<number>,
  median: number,
  side: 1 | -1,
): number {
  let largest = 1;
  let isFar = false;
  for (let at = 0; at < rows.length; at++) {
    const own = side * distance[rows[at]];
    largest = Math.max(largest, own);
    if (own > 0 && outlier[rows[at]] === 1) isFar = true;
  }
  return isFar ? largest : Math.max(largest, MIN_DISTANCE * median);
}

function byCapacity(
  { peak_bytes: peak, capacity_bytes: capacity, length }: FleetDevices,
  rows: ArrayLike<number>,
): Shades {
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
export function hasCapacity({ capacity_bytes: capacity }: FleetDevices, rows: ArrayLike<number>): boolean {
  return Array.from(rows).some((row) => capacity[row] > 0);
}
