import { describe, expect, it } from "vitest";
import { decodeTables } from "../tables/tables";
import { encodeTables, type FixtureColumns, fixtureRows } from "./fixture";
import { keepColumns, readLifetimes } from "./lifetimes";
import type { RecordingData } from "./recording";

const columns: FixtureColumns = {
  role: { kind: "u8", values: [0, 0, 0] },
  charge: { kind: "i32", values: [64, 128, 64] },
  start: { kind: "i32", values: [-1, 0, 2] },
  end: { kind: "i32", values: [2, 4, 5] },
};
const stretches: FixtureColumns = {
  start: { kind: "i32", values: [1, 4] },
  end: { kind: "i32", values: [3, 5] },
  bytes: { kind: "i32", values: [7, -2] },
};

const read = (rows: FixtureColumns, unexplained = stretches): RecordingData =>
  readLifetimes(decodeTables(encodeTables({ positions: 5 }, { rows, unexplained })));

describe("lifetimes", () => {
  it("are rows without texts, whose missing columns have the usual values", () => {
    const { rows, program } = read(columns);
    expect(rows.length).toBe(3);
    expect([...rows.charge]).toEqual([64, 128, 64]);
    expect(rows.size).toEqual(rows.charge);
    expect(rows.defined).toBe(rows.start);
    expect([...rows.last_used]).toEqual([1, 3, 4]);
    expect(rows.name.at(1)).toBe("");
    // Gray marks rows older than the recording; others have colors of sizes.
    expect(rows.color[0]).toBe(0);
    expect(rows.color[2]).toBeGreaterThan(0);
    expect([...(program.unexplained ?? [])]).toEqual([0, 7, 7, 0, -2]);
  });

  it("may have columns of their own", () => {
    const { rows } = read({
      ...columns,
      size: { kind: "f64", values: [65, 2 ** 40, 64] },
      last_used: { kind: "i32", values: [1, 2, 4] },
    });
    expect([...rows.size]).toEqual([65, 2 ** 40, 64]);
    expect([...rows.last_used]).toEqual([1, 2, 4]);
  });

  it("have no unexplained bytes without a stretch", () => {
    const none = Object.fromEntries(
      Object.entries(stretches).map(([name, { kind }]) => [name, { kind, values: [] }]),
    );
    expect(read(columns, none).program.unexplained).toBeNull();
  });
});

describe("keepColumns", () => {
  const rows = [
    { name: "a", size: 64, role: 0, start: -1, end: 2 },
    { name: "b", size: 128, role: 0, start: 0, end: 4 },
    { name: "c", size: 64, role: 0, start: 2, end: 5 },
  ];
  const all = (changed: object = {}): RecordingData => ({
    ...read(columns),
    rows: fixtureRows([{ ...rows[0], ...changed }, ...rows.slice(1)]),
  });

  it("keeps the early columns of equal rows, which get their names", () => {
    const early = read(columns);
    const kept = keepColumns(all(), early);
    expect(kept.rows.start).toBe(early.rows.start);
    expect(kept.rows.color).toBe(early.rows.color);
    expect(kept.rows.name.at(2)).toBe("c");
  });

  it.each([{ end: 3 }, { charge: 1 }, { size: 65 }, { role: 1 }, { last_used: 0 }])(
    "keeps nothing if rows differ: %o",
    (changed) => {
      const changedRows = all(changed);
      expect(keepColumns(changedRows, read(columns))).toBe(changedRows);
    },
  );

  it("keeps nothing if there are more rows, or none early", () => {
    const more = { ...all(), rows: fixtureRows([...rows, rows[0]]) };
    expect(keepColumns(more, read(columns))).toBe(more);
    expect(keepColumns(more, null)).toBe(more);
  });
});
