import { describe, expect, it } from "vitest";
import type { Runs } from "./generated/answers";
import { makeRun } from "./run_fixture";
import { listedHost, placeOfId } from "./listed_host";

const many = Array.from({ length: 100 }, (_, i) => `w-${i}`);
const runs: Runs = {
  logdir: "/log",
  message: null,
  runs: [
    makeRun({ name: "pod", hosts: [...many, "w-1|x"], by_host: true }),
    makeRun({ name: "job", hosts: many }),
    makeRun({ name: "small", hosts: ["w-1", "w-2"] }),
    makeRun({ name: "pod|two", hosts: ["w-2"] }),
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

describe("placeOfId", () => {
  it("has the longest names that the id begins with", () => {
    expect(placeOfId(runs, "pod|w-10|allocator|TPU core 1")).toEqual({ run: "pod", host: "w-10" });
    expect(placeOfId(runs, "pod|w-1|x|allocator|HBM")).toEqual({ run: "pod", host: "w-1|x" });
    expect(placeOfId(runs, "pod|two|w-2|jit|HBM")).toEqual({ run: "pod|two", host: "w-2" });
    expect(placeOfId(runs, "other|w-1|x|HBM")).toEqual({ run: "", host: "" });
  });
});
