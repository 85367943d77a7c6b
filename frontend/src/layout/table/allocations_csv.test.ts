import { describe, expect, it } from "vitest";
import { fixtureRows, regionTable } from "../../payload/recording/fixture";
import { addressesFromRegions } from "../../payload/recording/addresses";
import { allocationsCsv } from "./allocations_csv";

describe("allocationsCsv", () => {
  const rows = fixtureRows([
    { name: "live before", size: 100, start: -1, end: 3, offset: -1 },
    { name: "kept", size: 50, unpadded: 48, start: 1, end: 4, role: 1, offset: 512 },
    { name: "=freed", size: 8, start: 0, end: 2, source: "a,b" },
  ]);
  const times = Float64Array.of(0, 1_500_000_000, 2_000_000_001, 2_500_000_000);
  const places = addressesFromRegions(rows, regionTable([{ index: 4096, address: 4096 }]));
  const [head, ...lines] = allocationsCsv(rows, [0, 1, 2], places, times, 7)
    .trimEnd()
    .split("\r\n")
    .map((line) => line.match(/("[^"]*"|[^,]*)(,|$)/g)?.map((cell) => cell.replace(/,$/, "")) ?? []);
  const cells = (line: number): Record<string, string> =>
    Object.fromEntries(head.map((heading, i) => [heading, lines[line][i]]));

  it("contains the times of allocation and free within the recording", () => {
    expect(cells(0)).toMatchObject({ allocated_at_ns: "", freed_at_ns: "2500000000", held_ns: "2500000000" });
    expect(cells(1)).toMatchObject({
      allocated_at_ns: "1500000000",
      allocated_at_s: "1.500000000",
      allocated_at: "1",
      freed_at_s: "",
      freed_at: "",
      requested_bytes: "48",
      category: "parameter",
    });
    expect(cells(2)).toMatchObject({
      name: "'=freed",
      source: '"a,b"',
      freed_at_s: "2.000000001",
      held_ns: "2000000001",
    });
  });

  it("contains addresses, where known", () => {
    expect(cells(0)).toMatchObject({ region: "", offset_bytes: "", address: "" });
    expect(cells(1)).toMatchObject({ region: "4096", offset_bytes: "512", address: "4608" });
  });

  it("sums to the bytes in use", () => {
    const sum = lines.reduce((bytes, _, line) => bytes + Number(cells(line)["charge_bytes"]), 0);
    expect(sum).toBe(165);
    const [headings, rest] = allocationsCsv(rows, [], places, times, 7)
      .replace(/"[^"]*"/, "")
      .split("\r\n");
    expect(rest.split(",").length).toBe(headings.split(",").length);
    expect(cells(3)["name"]).toBe('"stack, or unexplained by any allocation"');
    expect(allocationsCsv(rows, [0], places, times, 0).trimEnd().split("\r\n").length).toBe(2);
  });
});
