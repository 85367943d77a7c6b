import { expect, it } from "vitest";
import { fleetDevices } from "../../payload/responses/fixture";
import { rowsOf } from "../../payload/responses/fleet";
import { savedLines, sortedBy } from "../tables/fixture";
import { deviceColumns } from "./device_table";

const devices = fleetDevices([
  { host: "w-2", peak: 100, capacity: 200, fromMedian: 0 },
  { host: "w-10", peak: 150, fromMedian: 50, cause: "a.py:1 put, 50 B", growth: "b.py:2 add" },
  { host: "w-10", device: "TPU core 1", peak: 20, capacity: 80, fromMedian: -80, cause: "=cmd" },
]);
const rows = rowsOf(devices, "HBM");
const columns = deviceColumns(devices, rows, () => undefined);

it("sorts devices by number, with unknown values last in both directions", () => {
  const sorted = (key: string, descending: boolean): readonly number[] =>
    sortedBy(columns, [...rows], key, descending);
  expect(sorted("host", false)).toEqual([0, 1, 2]);
  expect(sorted("distance", true)).toEqual([1, 0, 2]);
  expect(sorted("share", true)).toEqual([0, 2, 1]);
  expect(sorted("share", false)).toEqual([2, 0, 1]);
});

it("saves devices with sizes in bytes, and without formulas", () => {
  expect(savedLines(columns, [1, 2])).toEqual([
    "host,run,device,memory,peak_bytes,capacity_bytes,from_median_bytes,measured,outlier,cause,growth,growth_bytes," +
      "growth_unit",
    'w-10,run,TPU core 0,HBM,150,,50,1,1,"a.py:1 put, 50 B",b.py:2 add,10,step',
    "w-10,run,TPU core 1,HBM,20,80,-80,1,1,'=cmd,,,",
  ]);
});

it("shows no column that no device has a value for", () => {
  expect(() =>
    sortedBy(
      deviceColumns(devices, rows.slice(1, 2), () => undefined),
      [1],
      "share",
      false,
    ),
  ).toThrow();
});
