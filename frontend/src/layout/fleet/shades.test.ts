import { describe, expect, it } from "vitest";
import { fleetDevices } from "../../payload/responses/fleet_fixture";
import { hasCapacity, shadesOf } from "./shades";

const devices = fleetDevices([
  { host: "a", peak: 900, capacity: 1000, fromMedian: -100 },
  { host: "b", peak: 1000, capacity: 1000, fromMedian: 0 },
  { host: "c", peak: 1200, fromMedian: 200 },
  { host: "d", peak: 9e9, fromMedian: 9e9, memory: "host" },
]);

describe("shades by distance from the median", () => {
  it("reach from the farthest device below to the farthest above", () => {
    const { shade, from, ticks } = shadesOf(devices, [0, 1, 2], 1000, "median");
    expect([...shade]).toEqual([-0.5, 0, 1, 0]);
    expect(from).toBe(-1);
    expect(ticks.map(({ label }) => label)).toEqual(["−200 B", "median", "+200 B"]);
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
