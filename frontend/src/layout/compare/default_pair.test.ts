import { describe, expect, it } from "vitest";
import type { Summary } from "../../payload/generated/answers";
import { makeSummary } from "../../payload/responses/fixture";
import { comparableRecordings, defaultPair, hasSame } from "./default_pair";

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
