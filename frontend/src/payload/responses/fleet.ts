import { formatBytes, formatShare } from "../../base/units";
import type { FleetMemory, FleetMeta } from "../generated/answers";
import type { Tables } from "../tables/tables";

/** State of a host's file: a missing host has none, by the gaps in numbered names. */
export type HostState = "read" | "waiting" | "missing" | "unreadable";

/** The devices of a fleet as columns, in natural order of their hosts. Sizes are in bytes. */
export interface FleetDevices {
  readonly length: number;
  /** Ids of their recordings. */
  readonly id: readonly string[];
  readonly host: readonly string[];
  readonly run: readonly string[];
  readonly device: readonly string[];
  /** Devices of equal memory are compared with each other. */
  readonly memory: readonly string[];
  readonly title: readonly string[];
  readonly peak: Float64Array;
  /** 0 if unknown. */
  readonly capacity: Float64Array;
  readonly fromMedian: Float64Array;
  /** Why a device is far from the median; empty for the others. */
  readonly cause: readonly string[];
  /** The site that leaks fastest; empty without a leak. */
  readonly growth: readonly string[];
  readonly growthBytes: Float64Array;
  /** A step, or what counts as one. */
  readonly growthUnit: readonly string[];
  /** 0: the peak is the plan of the host's largest program. */
  readonly measured: Uint8Array;
  readonly outlier: Uint8Array;
}

export interface FleetHost {
  readonly host: string;
  readonly state: HostState;
  /** Why its file cannot be read, or not completely; empty for the others. */
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
  const [devices, hosts] = [tables.table("devices"), tables.table("hosts")];
  const texts = (name: string, table = devices): string[] => {
    const column = table.text(name);
    return Array.from({ length: table.length }, (_, row) => column.at(row));
  };
  const [state, problem] = [texts("state", hosts), texts("problem", hosts)];
  return {
    meta: tables.meta as FleetMeta,
    devices: {
      length: devices.length,
      id: texts("id"),
      host: texts("host"),
      run: texts("run"),
      device: texts("device"),
      memory: texts("memory"),
      title: texts("title"),
      peak: devices.f64("peak"),
      capacity: devices.f64("capacity"),
      fromMedian: devices.f64("from_median"),
      cause: texts("cause"),
      growth: texts("growth"),
      growthBytes: devices.f64("growth_bytes"),
      growthUnit: texts("growth_unit"),
      measured: devices.u8("measured"),
      outlier: devices.u8("outlier"),
    },
    hosts: texts("host", hosts).map((host, row) => ({
      host,
      state: state[row] as HostState,
      problem: problem[row],
    })),
  };
}

/** Return the host of a device's file: of a process that saved several files, each is a host of the run. */
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
export function peakText({ peak, capacity, measured }: FleetDevices, row: number): string {
  const of =
    capacity[row] > 0 ? ` of ${formatBytes(capacity[row])}, ${formatShare(peak[row], capacity[row])}` : "";
  return `${formatBytes(peak[row])}${of}${measured[row] === 1 ? "" : " (plan of its largest program)"}`;
}

/** Format the distance from the median: `2.12 GiB above the median device`. */
export function distanceText(
  { fromMedian, device }: FleetDevices,
  row: number,
  { apart }: FleetMemory,
): string {
  const median = `the median ${apart.some((each) => each.device === device[row]) ? device[row] : "device"}`;
  const distance = fromMedian[row];
  if (distance === 0) return `equal to ${median}`;
  return `${formatBytes(Math.abs(distance))} ${distance > 0 ? "above" : "below"} ${median}`;
}

/** Format a leak: `metrics.py:41 record, 24.0 MiB per step`; empty without one. */
export function growthText({ growth, growthBytes, growthUnit }: FleetDevices, row: number): string {
  return growth[row] === "" ? "" : `${growth[row]}, ${formatBytes(growthBytes[row])} per ${growthUnit[row]}`;
}
