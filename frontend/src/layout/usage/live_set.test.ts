import { describe, expect, it } from "vitest";
import { fixtureRows } from "../../payload/recording/fixture";
import {
  bytesByRole,
  bytesOver,
  hasRoles,
  liveAt,
  liveBetween,
  liveBytes,
  mostBetween,
  sharersAt,
} from "./live_set";

const rows = fixtureRows([
  { size: 100, role: 1, start: -1, end: 10 },
  { size: 40, role: 8, start: 2, end: 5 },
  { size: 40, role: 8, charge: 0, start: 3, end: 6 },
  { size: 7, role: 6, start: 5, end: 10 },
]);

describe("the live set", () => {
  it("contains a buffer from its start up to, not including, its end", () => {
    const at = (position: number): number[] => [...liveAt(rows, position)];
    expect(at(0)).toEqual([0]);
    expect(at(2)).toEqual([0, 1]);
    expect(at(4)).toEqual([0, 1]);
    expect(at(5)).toEqual([0, 3]);
    expect(at(9)).toEqual([0, 3]);
    expect(at(10)).toEqual([]);
  });

  it("of a range contains the buffers that are live at any of its positions", () => {
    expect([...liveBetween(rows, 0, 1)]).toEqual([0]);
    expect([...liveBetween(rows, 4, 5)]).toEqual([0, 1, 3]);
    for (const [first, last] of [
      [0, 9],
      [4, 5],
      [6, 6],
    ] as const) {
      const at = Array.from({ length: last - first + 1 }, (_, i) => liveBytes(rows, liveAt(rows, first + i)));
      expect(mostBetween(rows, liveBetween(rows, first, last), first, last)).toBe(Math.max(...at));
    }
  });

  it("separates buffers whose memory is charged to another one", () => {
    expect([...sharersAt(rows, 4)]).toEqual([2]);
    expect([...sharersAt(rows, 6)]).toEqual([]);
  });

  it("sums charges, in total and by role, largest first", () => {
    expect(liveBytes(rows, liveAt(rows, 4))).toBe(140);
    expect([...bytesByRole(rows, liveAt(rows, 5))]).toEqual([
      [1, 100],
      [6, 7],
    ]);
  });

  it("detects whether any charged row has a role", () => {
    expect(hasRoles(rows)).toBe(true);
    expect(hasRoles(fixtureRows([{ size: 8, role: 0 }, { role: 9 }]))).toBe(false);
  });

  it("sums the selected rows over the whole axis", () => {
    const at = (only: Uint8Array): number[] =>
      Array.from({ length: 10 }, (_, position) =>
        liveBytes(
          rows,
          liveAt(rows, position).filter((row) => only[row] === 1),
        ),
      );
    for (const only of [Uint8Array.of(1, 1, 1, 1), Uint8Array.of(0, 1, 1, 0)])
      expect([...bytesOver(rows, 10, only)]).toEqual(at(only));
  });
});
