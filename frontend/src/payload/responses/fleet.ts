import type { FleetMeta } from "../generated/answers";
import type { Tables } from "../tables/tables";

/** State of a host's file: a missing host has none, by the gaps in numbered names. */
export type HostState = "read" | "waiting" | "missing" | "unreadable";

/** The devices of a fleet as columns, in natural order of their hosts. Sizes are in bytes. */
export interface FleetDevices {
  readonly length: number;
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

/** Return the id of a device's recording. */
export function recordingId(devices: FleetDevices, row: number): string {
  return [devices.run[row], devices.host[row], devices.title[row], devices.device[row]].join("|");
}
