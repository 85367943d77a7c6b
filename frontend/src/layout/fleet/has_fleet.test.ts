import { describe, expect, it } from "vitest";
import type { Run, Summary } from "../../payload/generated/answers";
import { hasDevices, hasHosts } from "./has_fleet";

const run = (name: string, ...hosts: string[]): Run => ({ name, hosts, modified_ns: null, peak_bytes: null });
const memory = (name: string, axis = "TIME", host = "a"): Summary =>
  ({ axis, host, memory: name }) as Partial<Summary> as Summary;

describe("a fleet", () => {
  it("is several hosts of a run, or of the sessions in its folder", () => {
    const runs = [run("pod/10_00_01", "a"), run("pod/10_00_02", "b"), run("one", "a"), run("two", "b", "c")];
    expect(hasHosts(runs, "pod/10_00_01")).toBe(true);
    expect(hasHosts(runs, "one")).toBe(false);
    expect(hasHosts(runs, "two")).toBe(true);
  });

  it("is several devices of a host, not several memories", () => {
    expect(hasDevices([memory("GPU_0_bfc"), memory("GPU_1_bfc")])).toBe(true);
    expect(hasDevices([memory("GPU_0_bfc"), memory("gpu_host_bfc")])).toBe(false);
    expect(hasDevices([memory("HBM", "PROGRAM_ORDER"), memory("HBM2", "PROGRAM_ORDER")])).toBe(false);
    expect(hasDevices([memory("TPU 0"), memory("TPU 0", "INSTANT")])).toBe(false);
  });
});
