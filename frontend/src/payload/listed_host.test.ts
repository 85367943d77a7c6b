import { describe, expect, it } from "vitest";
import type { Runs } from "./generated/answers";
import { makeRun } from "./run_fixture";
import { hostOfId, listedHost } from "./listed_host";

const many = Array.from({ length: 100 }, (_, i) => `w-${i}`);
const runs: Runs = {
  logdir: "/log",
  message: null,
  runs: [
    makeRun({ name: "pod", hosts: [...many, "w-1|x"], by_host: true }),
    makeRun({ name: "job", hosts: many }),
    makeRun({ name: "small", hosts: ["w-1", "w-2"] }),
  ],
};

describe("listedHost", () => {
  it("is the chosen host of a run that is read host by host", () => {
    expect(listedHost(runs, "pod", "w-7")).toBe("w-7");
    expect(listedHost(runs, "job", "w-7")).toBe("");
  });

  it("is empty without a choice, and for unknown hosts and runs", () => {
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
