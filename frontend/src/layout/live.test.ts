import { describe, expect, it } from "vitest";
import { overviewRow } from "./fixture";
import { durationText, groupMarks, hostOf, keepTimes, liveStatus, snapshotsOf } from "./live";

const NOW = 1_800_000_000_000;
const curve = (secondsAgo: number, more = {}) =>
  overviewRow("curve", {
    kind: "watch",
    axis: "TIME",
    live: true,
    end_ns: (NOW - 1000 * secondsAgo) * 1e6,
    interval_ns: 1e9,
    ...more,
  });
const heard = (lastAgo: number, changedAgo: number | null, failures = 0) => ({
  last: NOW - 1000 * lastAgo,
  changed: changedAgo === null ? null : NOW - 1000 * changedAgo,
  failures,
});

describe("the status of a running job", () => {
  it("is none where no recording is live", () => {
    expect(liveStatus([curve(1, { live: false })], false, heard(0, 0), NOW)).toBeNull();
    expect(liveStatus([], false, heard(0, 0), NOW)).toBeNull();
  });

  it("is live while samples come, with the time of the last one", () => {
    const status = liveStatus([curve(9), curve(2)], false, heard(1, 1), NOW);
    expect(status).toEqual({ kind: "live", sampleMs: NOW - 2000, silentMs: 0 });
  });

  it("is silent once answers bring no samples for 10 s, or for 5 intervals", () => {
    expect(liveStatus([curve(9)], false, heard(0, 9), NOW)?.kind).toBe("live");
    expect(liveStatus([curve(11)], false, heard(0, 11), NOW)).toMatchObject({
      kind: "silent",
      silentMs: 11_000,
    });
    expect(liveStatus([curve(40, { interval_ns: 10e9 })], false, heard(0, 40), NOW)?.kind).toBe("live");
    expect(liveStatus([curve(60, { interval_ns: 10e9 })], false, heard(0, 60), NOW)?.kind).toBe("silent");
  });

  it("is silent at once for a job that died long ago", () => {
    expect(liveStatus([curve(3600)], false, heard(0, null), NOW)).toMatchObject({ silentMs: 3_600_000 });
  });

  it("is live between two answers, however slow the server is", () => {
    expect(liveStatus([curve(40)], false, heard(40, 40), NOW)?.kind).toBe("live");
  });

  it("is live where the job's clock is wrong, once a sample has come", () => {
    expect(liveStatus([curve(3600)], false, heard(1, 1), NOW)?.kind).toBe("live");
    expect(liveStatus([curve(-3600)], false, heard(0, null), NOW)?.kind).toBe("live");
  });

  it("is paused, or failing after two questions without an answer", () => {
    expect(liveStatus([curve(60)], true, heard(60, 60), NOW)?.kind).toBe("paused");
    expect(liveStatus([curve(1)], false, heard(1, 1, 1), NOW)?.kind).toBe("live");
    expect(liveStatus([curve(9)], false, heard(9, 9, 2), NOW)?.kind).toBe("failing");
  });
});

describe("durationText", () => {
  it("has the largest units alone", () => {
    const texts = [9_999, 119_000, 125_000, 7_199_000, 7_200_000, 11_100_000, 200_000_000].map(durationText);
    expect(texts).toEqual(["9 s", "119 s", "2 min", "119 min", "2 h", "3 h 5 min", "2 days"]);
  });
});

describe("the host of a watched device", () => {
  it("is that of its own process", () => {
    const device = curve(1, { id: "d", memory: "cuda:0", host: "a" });
    const host = curve(1, { id: "h", memory: "host", host: "a" });
    const others = [
      curve(1, { id: "i", memory: "host", host: "b" }),
      curve(1, { id: "j", memory: "host", host: "a", run: "another" }),
    ];
    expect(hostOf([device, host, ...others], device)).toEqual([host]);
    expect(hostOf([device, host, ...others], host)).toEqual([]);
  });
});

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

const times = (...seconds: number[]): Float64Array => new Float64Array(seconds.map((time) => time * 1e9));

describe("positions of a curve that grows", () => {
  const last = times(0, 1, 2, 3, 4, 5, 6, 7);

  it("stay while samples are appended", () => {
    const kept = { position: 5, zoom: [2.25, 8] as const };
    expect(keepTimes(kept, last, times(0, 1, 2, 3, 4, 5, 6, 7, 8, 9))).toEqual(kept);
  });

  it("keep their times where older samples are dropped", () => {
    const next = times(0, 2, 4, 6, 7, 8);
    expect(keepTimes({ position: 6, zoom: [3, 6.5] }, last, next)).toEqual({ position: 3, zoom: [1.5, 3.5] });
    expect(keepTimes({ position: null, zoom: null }, last, next)).toEqual({ position: null, zoom: null });
  });
});
