import type { Advice, AdviceList, FitCandidate, FitStep, Run, Summary } from "../generated/answers";
import { encodeTables } from "../recording/fixture";
import { decodeTables } from "../tables/tables";
import { type Fleet, type FleetDevices, type FleetHost, readFleet } from "./fleet";
import { type Forest, readForest } from "./forest";

const GIB = 2 ** 30;
export const LIMIT = 16 * GIB;

/** Return a candidate of choice 0 that fits, with the given values of some fields. Sizes are in GiB. */
export function fitCandidate(
  value: FitCandidate["value"],
  reserved: number | null,
  other: Partial<FitCandidate> = {},
): FitCandidate {
  const bytes = reserved === null ? null : reserved * GIB;
  return {
    target: "v5e:2x2",
    knobs: { remat: "none" },
    changes: [],
    change: "",
    choice: 0,
    value,
    run: `run ${String(value)} ${other.choice ?? 0}`,
    fits: bytes !== null && bytes <= LIMIT,
    reserved_bytes: bytes,
    peak_bytes: bytes,
    capacity_bytes: LIMIT,
    limit_bytes: LIMIT,
    rematerialized: 0,
    rematerialized_flops: 0,
    step_seconds: 0,
    bound_seconds: {},
    work_seconds: {},
    items_per_second: 0,
    on_front: false,
    utilization: 0,
    roles:
      bytes === null
        ? []
        : [
            { role: 5, bytes: 0.75 * bytes },
            { role: 1, bytes: 0.25 * bytes },
          ],
    parts: [],
    seconds: 2,
    error: bytes === null ? "ValueError: no" : null,
    traceback: null,
    versions: { jax: "0.12.0", libtpu: "0.0.52" },
    caveats: [],
    ...other,
  };
}

/** A step with these candidates, and a choice for each of their targets and knobs. */
export function fitStep(candidates: FitCandidate[], searched = "batch"): FitStep {
  const numbers = [...new Set(candidates.map(({ choice }) => choice))].sort((a, b) => a - b);
  return {
    step: "/code/fit_gpt.py:step",
    searched,
    headline: "",
    item: "batch",
    plan: [],
    candidates,
    choices: numbers.map((choice) => {
      const own = candidates.filter((each) => each.choice === choice);
      const best = (fitting: FitCandidate[]): number | null =>
        fitting.length === 0 ? null : candidates.indexOf(fitting[fitting.length - 1]);
      const { target, knobs, changes, change } = own[0];
      const fitting = own.filter(({ fits }) => fits);
      return {
        target,
        knobs,
        changes,
        change,
        sentences: [],
        candidate: best(fitting),
        at_end: own.at(-1)?.fits === true,
        without_recomputation: best(fitting.filter(({ rematerialized }) => rematerialized === 0)),
      };
    }),
  };
}

/** A device of a fixture: its host, peak, and distance from the median; outliers are those with a cause. */
interface FixtureDevice {
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
            peak_bytes: sizes(({ peak }) => peak),
            capacity_bytes: sizes(({ capacity = 0 }) => capacity),
            from_median_bytes: sizes(({ fromMedian = 0 }) => fromMedian),
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

/**
 * Build a forest for tests from one path of labels for each row, root first. A row with an empty path has no
 * node.
 */
export function fixtureForest(paths: string[][], merged: Record<string, number> = {}): Forest {
  interface Node {
    label: string;
    below: Map<string, Node>;
    rows: number[];
  }
  const made = (label: string): Node => ({ label, below: new Map(), rows: [] });
  const root = made("");
  paths.forEach((path, row) => {
    let node = root;
    for (const label of path) {
      const next = node.below.get(label) ?? made(label);
      node.below.set(label, next);
      node = next;
    }
    if (node !== root) node.rows.push(row);
  });
  const labels: string[] = [];
  const parent: number[] = [];
  const end: number[] = [];
  const leaf = paths.map(() => -1);
  const visit = (node: Node, above: number): void => {
    const number = labels.push(node.label) - 1;
    parent.push(above);
    end.push(0);
    for (const row of node.rows) leaf[row] = number;
    for (const child of node.below.values()) visit(child, number);
    end[number] = labels.length;
  };
  for (const child of root.below.values()) visit(child, -1);
  const tables = encodeTables(
    {},
    {
      tree: {
        label: { kind: "text", values: labels },
        parent: { kind: "i32", values: parent },
        end: { kind: "i32", values: end },
        merged: { kind: "i32", values: labels.map((label) => merged[label] ?? 1) },
        framework: { kind: "u8", values: labels.map((label) => Number(label.startsWith("jax"))) },
      },
      leaf: { node: { kind: "i32", values: leaf } },
    },
  );
  return readForest(decodeTables(tables));
}

/** Return a run of one host with the given fields. */
export function makeRun(more: Partial<Run>): Run {
  return {
    name: "train",
    hosts: ["a"],
    modified_ns: null,
    peak_bytes: null,
    by_host: false,
    host_count: 1,
    sessions: 1,
    ...more,
  };
}

/** Return a recording of a list, a program unless the fields say otherwise. */
export function makeSummary(id: string, more: Partial<Summary> = {}): Summary {
  return {
    id,
    kind: "program",
    title: id,
    backend: "unknown",
    run: "run",
    host: "host",
    memory: "HBM",
    axis: "PROGRAM_ORDER",
    length: 1,
    time_ns: null,
    end_ns: null,
    step: null,
    allocations: 1,
    peak_bytes: 1,
    peak_position: 0,
    reserved_bytes: 1,
    reported_peak_bytes: null,
    capacity_bytes: null,
    capacity_source: "",
    live: false,
    interval_ns: null,
    reason: null,
    caveats: [],
    ...more,
  };
}

/** Candidates of two choices: the first has a largest value that fits, the second none. */
export const TWO_CHOICES = fitStep([
  fitCandidate(8, 4),
  fitCandidate(52, 12, { rematerialized: 7 }),
  fitCandidate(60, 18),
  fitCandidate(8, null, {
    choice: 1,
    knobs: { remat: "full" },
    changes: ["donate:state"],
    change: "donate state",
  }),
]);

/** A piece of advice with unremarkable values, for tests. */
export function makeAdvice(title: string, more: Partial<Advice> = {}): Advice {
  return {
    kind: "donation",
    title,
    sentence: `${title}.`,
    change: "code",
    bytes: 1,
    saving_bytes: 10,
    saving_at_most_bytes: more.saving_bytes ?? 10,
    saving_of: "peak",
    before_bytes: 100,
    after_bytes: 90,
    fits: null,
    evidence: "simulated",
    effort: "one argument",
    cost: "none",
    time_ratio: null,
    longer: null,
    rows: [[0, 0]],
    rows_total: 1,
    ...more,
  };
}

/** The advice about a recording, for tests. */
export function makeAdviceList(advice: Advice[], more: Partial<AdviceList> = {}): AdviceList {
  return { peak_bytes: 100, limit_bytes: null, fits_with: null, advice, ...more };
}
