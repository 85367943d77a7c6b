import { describe, expect, it } from "vitest";
import type { ComparedEntry, Comparison, Summary, WaterfallStep } from "../../payload/generated/answers";
import { makeSummary } from "../../payload/responses/fixture";
import {
  comparableRecordings,
  defaultPair,
  entryName,
  findSelectedChange,
  hasSame,
  stepName,
  swapName,
  waterfall,
} from "./changes";

const selectedEntry = (row_a: number | null, row_b: number | null, step: number): ComparedEntry => ({
  ...({} as ComparedEntry),
  row_a,
  row_b,
  step,
});
const step = (label: string): WaterfallStep => ({ label, bytes_a: 1, bytes_b: 2 });
const comparison: Comparison = {
  ...({} as Comparison),
  entries: [selectedEntry(1, 2, 0), selectedEntry(null, 3, 1), selectedEntry(4, null, 0)],
  steps: [step("activation"), step("1,2")],
};

describe("the selected change of a comparison", () => {
  it("names an selectedEntry by its rows in A and B", () => {
    expect(comparison.entries.map(entryName)).toEqual(["1,2", ",3", "4,"]);
    expect(findSelectedChange(comparison, ",3")).toEqual({ kind: "entry", entry: comparison.entries[1] });
  });

  it("names a step by any label, and lists the entries it includes", () => {
    const [activation, odd] = comparison.steps;
    expect(findSelectedChange(comparison, stepName(activation))).toEqual({
      kind: "step",
      step: activation,
      entries: [comparison.entries[0], comparison.entries[2]],
    });
    expect(findSelectedChange(comparison, stepName(odd))).toMatchObject({ kind: "step", step: odd });
  });

  it("is null for an unknown name", () => {
    for (const name of ["", "9,9", "step:nothing", ","])
      expect(findSelectedChange(comparison, name)).toBeNull();
  });

  it("is the same when A and B are swapped", () => {
    expect(["1,2", ",3", "4,", "step:1,2", ""].map(swapName)).toEqual(["2,1", "3,", ",4", "step:1,2", ""]);
  });
});

const stepOf = (label: string, bytes_a: number, bytes_b: number) => ({ label, bytes_a, bytes_b });

describe("waterfall", () => {
  it("leads from A to B: each bar starts where the previous one ends", () => {
    const { bars, origin, unchanged } = waterfall(100, 60, [
      stepOf("x", 10, 50),
      stepOf("same", 5, 5),
      stepOf("y", 85, 5),
    ]);
    expect(bars.map(({ label, kind, from, to }) => [label, kind, from * 140, to * 140])).toEqual([
      ["A", "total", 0, 100],
      ["x", "grown", 100, 140],
      ["y", "shrunk", 140, 60],
      ["B", "total", 0, 60],
    ]);
    expect(origin).toBe(0);
    expect(unchanged).toBe(1);
  });

  it("starts the axis above 0 for small changes, so that they are visible", () => {
    const { bars, origin, end } = waterfall(1000, 1010, [stepOf("x", 0, 10)]);
    expect([origin, end]).toEqual([990, 1010]);
    expect(bars.map(({ from, to }) => [from, to])).toEqual([
      [0, 0.5],
      [0.5, 1],
      [0, 1],
    ]);
  });

  it("contains only the totals if nothing changed", () => {
    const { bars, origin } = waterfall(7, 7, [stepOf("x", 7, 7)]);
    expect(bars.map(({ label, from, to }) => [label, from, to])).toEqual([
      ["A", 0, 1],
      ["B", 0, 1],
    ]);
    expect(origin).toBe(0);
    expect(waterfall(0, 0, []).bars).toHaveLength(2);
  });
});

const summary = (id: string, more: Partial<Summary> = {}): Summary =>
  makeSummary(id, { title: "jit_f(1)", run: "r", host: "h", ...more });
const profile = (name: string): Summary =>
  summary(name, { kind: "device_profile", title: name, host: name, memory: "cpu:0" });

describe("defaultPair", () => {
  it("compares the first and the last of a series in numeric order", () => {
    const run = ["m10", "m2", "m1"].map(profile);
    expect(defaultPair([...run, summary("p")], [])).toEqual({ a: "m1", b: "m10", at_a: null });
  });

  it("compares the same program of the previous run, whatever its id", () => {
    const before = [summary("old g", { title: "jit_g(7)" }), summary("old f", { title: "jit_f(9)" })];
    expect(defaultPair([summary("f")], before)).toEqual({ a: "old f", b: "f", at_a: null });
  });

  it("compares with no program of another backend", () => {
    const [tpu, gpu] = ["TPU", "GPU"].map((backend) => summary(backend, { backend }));
    expect([hasSame([tpu], [gpu]), hasSame([tpu], [gpu, tpu])]).toEqual([false, true]);
    expect(defaultPair([tpu], [gpu])).toEqual({ a: "TPU", b: "TPU", at_a: 0 });
    const dumped = ["module 7", "module 9"].map((of) => summary(of, { title: `jit_f (${of})` }));
    expect(hasSame(dumped.slice(0, 1), dumped.slice(1))).toBe(true);
  });

  it("compares with the same host of another run, even if other hosts ran the program too", () => {
    const now = ["h1", "h2"].map((host) => summary(`now ${host}`, { host }));
    const before = ["h2", "h1"].map((host) => summary(`old ${host}`, { host }));
    expect(defaultPair(now, before)).toEqual({ a: "old h1", b: "now h1", at_a: null });
    expect(defaultPair(now, before, true)).toEqual({ a: "now h1", b: "old h1", at_a: null });
  });

  it("compares two hosts only if there is no other run", () => {
    const hosts = ["h10", "h2", "h1"].map((host) => summary(host, { host }));
    expect(defaultPair(hosts, null)).toEqual({ a: "h1", b: "h10", at_a: null });
    expect(defaultPair(hosts, [])).toEqual({ a: "h10", b: "h10", at_a: 0 });
    expect(defaultPair(hosts, [summary("g", { title: "jit_g(1)" })])).toEqual({
      a: "h10",
      b: "h10",
      at_a: 0,
    });
  });

  it("compares two compilations of a program on one host", () => {
    const again = summary("again", { title: "jit_f(2)" });
    expect(defaultPair([summary("f"), again], [])).toEqual({ a: "f", b: "again", at_a: null });
  });

  it("compares the start and the peak of the largest recording otherwise, and returns null for an empty run", () => {
    expect(defaultPair([summary("f")], [])).toEqual({ a: "f", b: "f", at_a: 0 });
    expect(defaultPair([summary("m", { axis: "INSTANT" })], [])).toEqual({ a: "m", b: "m", at_a: null });
    expect(defaultPair([], [summary("f")])).toBeNull();
  });
});

describe("comparableRecordings", () => {
  it("returns recordings of the same kind, equal names first", () => {
    const all = [profile("m1"), summary("g", { title: "jit_g(2)" }), summary("f2", { title: "jit_f(2)" })];
    expect(comparableRecordings(all, summary("f")).map(({ id }) => id)).toEqual(["f2", "g"]);
    expect(comparableRecordings(all, undefined)).toHaveLength(3);
  });
});
