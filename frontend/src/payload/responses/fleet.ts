import { formatBytes, formatShare } from "../../base/units";
import type { FleetMemory, FleetMeta } from "../generated/answers";
import { readFleetDevices, type FleetDevices } from "../generated/tables";
import type { Tables } from "../tables/tables";

export type { FleetDevices };

/** State of a host's file. A host is missing if its number is a gap in the numbers of the other hosts. */
export type HostState = "read" | "waiting" | "missing" | "unreadable";

export interface FleetHost {
  readonly host: string;
  readonly state: HostState;
  /** Reason why its file cannot be read, or not completely; empty for other hosts. */
  readonly problem: string;
}

/** A capture, as far as it has been read. */
export interface Fleet {
  readonly meta: FleetMeta;
  readonly devices: FleetDevices;
  /** In natural order. */
  readonly hosts: readonly FleetHost[];
}

/** Read the answer of api/fleet. */
export function readFleet(tables: Tables): Fleet {
  const hosts = tables.table("hosts");
  const [host, state, problem] = ["host", "state", "problem"].map((name) => hosts.text(name));
  return {
    meta: tables.meta as FleetMeta,
    devices: readFleetDevices(tables.table("devices")),
    hosts: Array.from({ length: hosts.length }, (_, row) => ({
      host: host.at(row),
      state: state.at(row) as HostState,
      problem: problem.at(row),
    })),
  };
}

/** Return the host of a device's file. If a process saved several files, each is a host of the run. */
export function fileHost({ id, run, title, device }: FleetDevices, row: number): string {
  return id[row].slice(run[row].length + 1, -(title[row].length + device[row].length + 2));
}

/** Return the row of the device whose recording has an id; -1 if there is none. */
export function rowWithId(devices: FleetDevices, id: string): number {
  return devices.id.indexOf(id);
}

/** Return the rows of the devices with a memory. */
export function rowsOf({ memory, length }: FleetDevices, wanted: string): Uint32Array {
  return Uint32Array.from({ length }, (_, row) => row).filter((row) => memory[row] === wanted);
}

export function deviceName({ host, device }: FleetDevices, row: number): string {
  return `${host[row]} ${device[row]}`.trim();
}

/** Format the peak: `30.9 GiB of 31.2 GiB, 99%`. */
export function peakText(
  { peak_bytes: peak, capacity_bytes: capacity, measured }: FleetDevices,
  row: number,
): string {
  const of =
    capacity[row] > 0 ? ` of ${formatBytes(capacity[row])}, ${formatShare(peak[row], capacity[row])}` : "";
  return `${formatBytes(peak[row])}${of}${measured[row] === 1 ? "" : " (plan of its largest program)"}`;
}

/** Format the distance from the median: `2.12 GiB above the median device`. */
export function distanceText(
  { from_median_bytes, device }: FleetDevices,
  row: number,
  { apart }: FleetMemory,
): string {
  const median = `the median ${apart.some((each) => each.device === device[row]) ? device[row] : "device"}`;
  const distance = from_median_bytes[row];
  if (distance === 0) return `equal to ${median}`;
  return `${formatBytes(Math.abs(distance))} ${distance > 0 ? "above" : "below"} ${median}`;
}

/** Format a leak: `metrics.py:41 record, 24.0 MiB per step`; empty without one. */
export function growthText({ growth, growth_bytes, growth_unit }: FleetDevices, row: number): string {
  return growth[row] === ""
    ? ""
    : `${growth[row]}, ${formatBytes(growth_bytes[row])} per ${growth_unit[row]}`;
}
