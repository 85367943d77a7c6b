import { describe, expect, it } from "vitest";
import { fleetDevices, fleetOf } from "../../payload/responses/fixture";
import type { FleetHost } from "../../payload/responses/fleet";
import { cellAt, cellBeside, hasCapacity, type HeatMap, heatMap, shadesOf, shortNames } from "./heat_map";

/** A heat map of hosts with these numbers of devices; 0 is a missing host. */
function mapOf(counts: readonly number[], width: number, gutter = 20): HeatMap {
  const hosts = counts.map((count, i): FleetHost => ({
    host: `w-${i}`,
    state: count > 0 ? "read" : "missing",
    problem: "",
  }));
  const fleet = fleetOf(
    counts.flatMap((count, i) => Array.from({ length: count }, () => ({ host: `w-${i}`, peak: 1 }))),
    hosts,
  );
  const rows = Uint32Array.from({ length: fleet.devices.length }, (_, row) => row);
  return heatMap(hosts, fleet.devices, rows, width, gutter);
}

describe("heatMap", () => {
  it("gives each of a few hosts a line, and a missing host one wide cell", () => {
    const map = mapOf([2, 0, 2], 220);
    expect(map.pitch).toBe(24);
    expect(map.height).toBe(72);
    expect([...map.device]).toEqual([0, 1, -1, 2, 3]);
    expect([...map.host]).toEqual([0, 0, 1, 2, 2]);
    expect([...map.left]).toEqual([20, 44, 20, 20, 44]);
    expect([...map.top]).toEqual([0, 0, 24, 48, 48]);
    expect([...map.wide]).toEqual([24, 24, 48, 24, 24]);
  });

  it("keeps the places of hosts on lines of a power of two", () => {
    const map = mapOf(
      Array.from({ length: 24 }, (_, i) => (i === 9 ? 0 : 4)),
      1240,
    );
    expect(map.lines.map(({ host }) => host)).toEqual([0, 8, 16]);
    const ninth = map.host.indexOf(9);
    // The gap of 4 pixels is between hosts.
    expect([map.left[ninth], map.top[ninth], map.wide[ninth]]).toEqual([20 + 4 * 24 + 4, 24, 96]);
  });

  it("shows 8,192 devices at once, inside its width", () => {
    const map = mapOf(new Array<number>(1024).fill(8), 1240);
    expect(map.count).toBe(8192);
    expect(map.pitch).toBeGreaterThanOrEqual(6);
    expect(map.height).toBeLessThanOrEqual(400);
    expect(Math.max(...map.left) + map.pitch).toBeLessThanOrEqual(1240);
  });

  it("grows downward where even small cells are too many", () => {
    const map = mapOf(new Array<number>(3000).fill(1), 80);
    expect(map.pitch).toBe(3);
    expect(map.height).toBeGreaterThan(400);
    expect(Math.max(...map.left) + map.pitch).toBeLessThanOrEqual(80);
  });

  it("draws only the devices of the memory", () => {
    const hosts: FleetHost[] = [{ host: "a", state: "read", problem: "" }];
    const fleet = fleetOf(
      [
        { host: "a", peak: 1 },
        { host: "a", peak: 2, memory: "host" },
      ],
      hosts,
    );
    expect([...heatMap(hosts, fleet.devices, [1], 100, 0).device]).toEqual([1]);
  });
});

describe("cells", () => {
  const map = mapOf([2, 0, 2, 2, 2, 2, 2, 2, 2, 2], 100);

  it("are found at a point", () => {
    for (let cell = 0; cell < map.count; cell++)
      expect(cellAt(map, map.left[cell] + map.wide[cell] - 1, map.top[cell] + map.pitch - 1)).toBe(cell);
    expect(cellAt(map, 5, 5)).toBe(-1);
    expect(cellAt(map, 50, map.height + 1)).toBe(-1);
  });

  it("are neighbors along the hosts and across the lines", () => {
    expect(cellBeside(map, 0, "ArrowRight")).toBe(1);
    expect(cellBeside(map, 0, "ArrowLeft")).toBe(0);
    expect(cellBeside(map, 3, "End")).toBe(map.count - 1);
    expect(cellBeside(map, 3, "Enter")).toBeNull();
    const below = cellBeside(map, 0, "ArrowDown") ?? 0;
    expect(map.top[below]).toBe(map.pitch);
    expect(map.left[below]).toBe(map.left[0]);
    expect(cellBeside(map, below, "ArrowUp")).toBe(0);
    expect(cellBeside(map, 0, "ArrowUp")).toBe(0);
  });
});

describe("shortNames", () => {
  it("are the numbers in which names differ", () => {
    expect(shortNames(["t1v-n-5a-w-9.example", "t1v-n-5a-w-10.example"])).toEqual(["9", "10"]);
    expect(shortNames(["host-10", "host-11"])).toEqual(["10", "11"]);
  });

  it("are the names where they differ in more than a number", () => {
    expect(shortNames(["alpha", "beta"])).toEqual(["alpha", "beta"]);
    expect(shortNames(["rank", "rank2"])).toEqual(["rank", "rank2"]);
    expect(shortNames(["one"])).toEqual(["one"]);
  });
});

const devices = fleetDevices([
  { host: "a", peak: 900, capacity: 1000, fromMedian: -100 },
  { host: "b", peak: 1000, capacity: 1000, fromMedian: 0 },
  { host: "c", peak: 1200, fromMedian: 200 },
  { host: "d", peak: 9e9, fromMedian: 9e9, memory: "host" },
]);

describe("shades by distance from the median", () => {
  it("reach from the farthest device below to the farthest above", () => {
    const { shade, from, ticks } = shadesOf(devices, [0, 1, 2], 1000, "median");
    expect([...shade]).toEqual([-1, 0, 1, 0]);
    expect(from).toBe(-1);
    expect(ticks.map(({ label }) => label)).toEqual(["−100 B", "median", "+200 B"]);
  });

  it("give an outlier below the full color, beside a large one above, and where it is near to a large median", () => {
    const far = fleetDevices([
      { host: "a", peak: 58_000, fromMedian: -2000, cause: "train.py:10" },
      { host: "b", peak: 60_000, fromMedian: 0 },
      { host: "c", peak: 150_000, fromMedian: 90_000, cause: "train.py:12" },
    ]);
    expect([...shadesOf(far, [0, 1, 2], 60_000, "median").shade]).toEqual([-1, 0, 1]);
    expect([...shadesOf(far, [0, 1], 60_000, "median").shade.slice(0, 2)]).toEqual([-1, 0]);
  });

  it("stay near the middle for the noise of a healthy fleet", () => {
    const healthy = fleetDevices([{ host: "a", peak: 1001, fromMedian: 1 }]);
    expect(shadesOf(healthy, [0], 1000, "median").shade[0]).toBeCloseTo(0.02);
  });
});

describe("shades by share of capacity", () => {
  it("are unknown without a capacity", () => {
    const { shade, from, ticks } = shadesOf(devices, [0, 1, 2], 1000, "capacity");
    expect([...shade].slice(0, 3)).toEqual([0, 1, NaN]);
    expect(from).toBe(0);
    expect(ticks.map(({ label }) => label)).toEqual(["90%", "100%"]);
    expect(hasCapacity(devices, [0, 2])).toBe(true);
    expect(hasCapacity(devices, [2])).toBe(false);
  });
});
