import { describe, expect, it } from "vitest";
import { compileSearch } from "../../base/search";
import { fileHost, rowsOf, rowWithId } from "../../payload/responses/fleet";
import { fleetDevices } from "../../payload/responses/fleet_fixture";
import { devicesCsv, filterDevices, listedRows, outside, sortDevices } from "./device_rows";

const devices = fleetDevices([
  { host: "w-2", peak: 100, capacity: 200, fromMedian: 0 },
  { host: "w-10", peak: 150, fromMedian: 50, cause: "a.py:1 put, 50 B", growth: "b.py:2 add" },
  { host: "w-10", device: "TPU core 1", peak: 20, capacity: 80, fromMedian: -80, cause: "=cmd" },
  { host: "w-2", peak: 7, memory: "host" },
]);
const rows = rowsOf(devices, "HBM");
const none = outside(devices.peak, null);

describe("rows of devices", () => {
  it("are those of one memory", () => {
    expect([...rows]).toEqual([0, 1, 2]);
    expect(rowWithId(devices, "run|w-10|allocator|TPU core 1")).toBe(2);
    expect(rowWithId(devices, "")).toBe(-1);
    expect(fileHost(devices, 2)).toBe("w-10");
  });

  it("are outliers, or all, farthest from the median first", () => {
    expect([...listedRows(devices, rows, none, false)]).toEqual([2, 1]);
    expect([...listedRows(devices, rows, none, true)]).toEqual([2, 1, 0]);
  });

  it("are restricted to a range of peaks without its end", () => {
    const dimmed = outside(devices.peak, [20, 150]);
    expect([...listedRows(devices, rows, dimmed, true)]).toEqual([2, 0]);
  });

  it("are filtered by text and size", () => {
    const found = filterDevices(devices, rows, compileSearch("b.py"), "");
    expect([...found.rows]).toEqual([1]);
    expect([...filterDevices(devices, rows, compileSearch(""), ">=100").rows]).toEqual([0, 1]);
    expect(filterDevices(devices, rows, compileSearch(""), "many").errors).toHaveLength(1);
  });

  it("are sorted by number, with unknown values last in both directions", () => {
    const sorted = (key: "host" | "share" | "distance", descending: boolean): number[] =>
      Array.from(sortDevices(devices, rows, { key, descending }));
    expect(sorted("host", false)).toEqual([0, 1, 2]);
    expect(sorted("distance", true)).toEqual([1, 0, 2]);
    expect(sorted("share", true)).toEqual([0, 2, 1]);
    expect(sorted("share", false)).toEqual([2, 0, 1]);
  });

  it("are saved with sizes in bytes, and without formulas", () => {
    const [, first, second] = devicesCsv(devices, Uint32Array.of(1, 2)).split("\r\n");
    expect(first).toBe('w-10,run,TPU core 0,HBM,150,,50,1,1,"a.py:1 put, 50 B",b.py:2 add,10,step');
    expect(second).toBe("w-10,run,TPU core 1,HBM,20,80,-80,1,1,'=cmd,,,");
  });
});
