import { describe, expect, it } from "vitest";
import type { FleetCapture } from "../../payload/generated/answers";
import { findingsOf } from "./findings";

const CAPTURE: FleetCapture = {
  name: "run",
  sessions: [],
  series: [],
  hosts: 20,
  missing: ["w-4", "w-5", "w-6", "w-9"],
  missing_ranges: [
    { first: "w-4", last: "w-6", count: 3 },
    { first: "w-9", last: "w-9", count: 1 },
  ],
  memories: [],
  leaks: [
    {
      site: "a.py:1",
      bytes: 8,
      unit: "step",
      hosts: ["w-1", "w-2", "w-3", "w-7"],
      devices: 4,
      recording: "id",
      text: "a leak",
    },
  ],
  programs: [
    {
      module: "jit_x",
      fingerprint: "f",
      hosts: 2,
      peak_bytes: null,
      reserved_bytes: null,
      problem: "damaged",
    },
    { module: "jit_y", fingerprint: "g", hosts: 2, peak_bytes: 1, reserved_bytes: 1, problem: null },
  ],
  other_programs: [
    {
      host: "w-8",
      module: "jit_y",
      fingerprint: "h",
      reserved_bytes: 5,
      usual_reserved_bytes: 7,
      recording: "own",
      usual_recording: "usual",
      difference: "2 B less",
      text: "",
    },
    {
      host: "w-9",
      module: "jit_y",
      fingerprint: null,
      reserved_bytes: null,
      usual_reserved_bytes: 7,
      recording: null,
      usual_recording: "usual",
      difference: "",
      text: "",
    },
  ],
  problems: [{ host: "w-0", file: "/w-0.pb", text: "the file is empty: profile again" }],
};

describe("findings about hosts", () => {
  it("are one for each range of missing hosts, file, program and leak", () => {
    expect(findingsOf(CAPTURE).map(({ kind, hosts, count, bytes }) => [kind, hosts, count, bytes])).toEqual([
      ["missing", "w-4 – w-6", 3, null],
      ["missing", "w-9", 1, null],
      ["unreadable", "w-0", 1, null],
      ["program", "w-8", 1, -2],
      ["program", "w-9", 1, null],
      ["unreadable", "jit_x", 2, null],
      ["leak", "w-1, w-2, w-3 and 1 more", 4, 8],
    ]);
  });

  it("tell out-of-memory errors from files that cannot be read", () => {
    const problems = [{ host: "w-0", file: "/w-0.oom.txt", text: "out of memory: jit_step" }];
    expect(findingsOf({ ...CAPTURE, problems }).map(({ kind }) => kind)).toContain("oom");
  });

  it("name the recordings that show them, where there are any", () => {
    const found = findingsOf(CAPTURE);
    expect(found.map(({ recording, usual }) => [recording, usual])[3]).toEqual(["own", "usual"]);
    expect(found[4].recording).toBe(null);
    expect(found[4].text).toBe("no jit_y, which most hosts have");
    expect([found[6].recording, found[6].usual]).toEqual(["id", null]);
  });
});
