import { describe, expect, it } from "vitest";
import { overviewRow } from "../overview/row_fixture";
import { groupMarks, snapshotsOf } from "./snapshots";

const snapshot = (host: string, seconds: number | null, more = {}) =>
  overviewRow(`${host} ${seconds}`, {
    kind: "device_profile",
    axis: "INSTANT",
    host,
    memory: "cuda:0",
    time_ns: seconds === null ? null : seconds * 1e9,
    ...more,
  });

describe("snapshots of a run", () => {
  it("are those of one memory with a time, in order of time", () => {
    const recordings = [
      snapshot("b", 20),
      snapshot("a", 10),
      snapshot("c", null),
      snapshot("d", 5, { memory: "cuda:1" }),
      snapshot("e", 7, { axis: "TIME" }),
    ];
    expect(snapshotsOf(recordings, "cuda:0").map(({ host }) => host)).toEqual(["a", "b"]);
    expect(snapshotsOf(recordings).map(({ host }) => host)).toEqual(["d", "a", "b"]);
  });

  it("are one of each file, though it has several devices", () => {
    expect(snapshotsOf([snapshot("a", 10), snapshot("a", 10, { memory: "cuda:1" })])).toHaveLength(1);
  });
});

describe("marks", () => {
  const marksOf = (seconds: number[]) =>
    groupMarks(
      seconds.map((time) => snapshot(`${time}`, time)),
      (ns) => ns / 1e9,
      100,
      18,
    ).map(({ x, snapshots }) => [x, snapshots.length]);

  it("of snapshots that are close together are one", () => {
    expect(marksOf([0, 10, 17, 18, 60, 100])).toEqual([
      [0, 3],
      [18, 1],
      [60, 1],
      [100, 1],
    ]);
  });

  it("outside the visible part are not drawn", () => {
    expect(marksOf([-1, 50, 101])).toEqual([[50, 1]]);
  });
});
