import { decodeTables } from "../tables/decode";
import { encodeTables } from "../tables/fixture";
import { type Fleet, type FleetDevices, type FleetHost, readFleet } from "./fleet";

/** A device of a fixture: its host, peak, and distance from the median; outliers are those with a cause. */
export interface FixtureDevice {
  host: string;
  peak: number;
  device?: string;
  memory?: string;
  capacity?: number;
  fromMedian?: number;
  cause?: string;
  growth?: string;
}

/** Return devices, decoded from the server's format. */
export function fleetDevices(devices: readonly FixtureDevice[]): FleetDevices {
  return fleetOf(devices, []).devices;
}

/** Return a fleet of devices and the states of hosts, without the rest of the answer. */
export function fleetOf(devices: readonly FixtureDevice[], hosts: readonly FleetHost[]): Fleet {
  const text = (read: (device: FixtureDevice) => string) => ({
    kind: "text" as const,
    values: devices.map(read),
  });
  const sizes = (read: (device: FixtureDevice) => number) => ({
    kind: "f64" as const,
    values: devices.map(read),
  });
  const flags = (read: (device: FixtureDevice) => boolean) => ({
    kind: "u8" as const,
    values: devices.map((device) => Number(read(device))),
  });
  return readFleet(
    decodeTables(
      encodeTables(
        {},
        {
          devices: {
            id: text(({ host, device = "TPU core 0" }) => `run|${host}|allocator|${device}`),
            host: text(({ host }) => host),
            run: text(() => "run"),
            device: text(({ device = "TPU core 0" }) => device),
            memory: text(({ memory = "HBM" }) => memory),
            title: text(() => "allocator"),
            peak: sizes(({ peak }) => peak),
            capacity: sizes(({ capacity = 0 }) => capacity),
            from_median: sizes(({ fromMedian = 0 }) => fromMedian),
            cause: text(({ cause = "" }) => cause),
            growth: text(({ growth = "" }) => growth),
            growth_bytes: sizes(({ growth = "" }) => growth.length),
            growth_unit: text(({ growth = "" }) => (growth === "" ? "" : "step")),
            measured: flags(() => true),
            outlier: flags(({ cause = "" }) => cause !== ""),
          },
          hosts: {
            host: { kind: "text", values: hosts.map(({ host }) => host) },
            state: { kind: "text", values: hosts.map(({ state }) => state) },
            problem: { kind: "text", values: hosts.map(({ problem }) => problem) },
          },
        },
      ),
    ),
  );
}
