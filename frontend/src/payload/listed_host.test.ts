import { describe, expect, it } from "vitest";
import type { Runs } from "./generated/answers";
import { hostOfId, listedHost } from "./listed_host";

const many = Array.from({ length: 100 }, (_, i) => `w-${i}`);
const runs: Runs = {
  logdir: "/log",
  message: null,
  runs: [
    { name: "pod", hosts: [...many, "w-1|x"], modified_ns: null, peak_bytes: null },
    {
      name: "job",
      hosts: ["w-1_7", ...many.map((_, i) => `memory_${1000 + i}`)],
      modified_ns: null,
      peak_bytes: null,
    },
    { name: "small", hosts: ["w-1", "w-2"], modified_ns: null, peak_bytes: null },
  ],
};

describe("listedHost", () => {
  it("is the chosen host of a run with many", () => {
    expect(listedHost(runs, "pod", "w-7")).toBe("w-7");
  });

  it("is empty for a job with many snapshots, which are marks on its curve", () => {
    expect(listedHost(runs, "job", "w-1_7")).toBe("");
    expect(listedHost(runs, "job", "memory_1003")).toBe("");
  });

  it("is empty for all hosts: without a choice, and where there are few", () => {
    expect(listedHost(runs, "pod", "")).toBe("");
    expect(listedHost(runs, "pod", "gone")).toBe("");
    expect(listedHost(runs, "small", "w-1")).toBe("");
    expect(listedHost(null, "pod", "w-7")).toBe("");
  });
});

describe("hostOfId", () => {
  it("is the longest name that the id begins with", () => {
    expect(hostOfId(runs, "pod", "pod|w-10|allocator|TPU core 1")).toBe("w-10");
    expect(hostOfId(runs, "pod", "pod|w-1|x|allocator|HBM")).toBe("w-1|x");
    expect(hostOfId(runs, "pod", "other|w-1|x|HBM")).toBe("");
  });
});
