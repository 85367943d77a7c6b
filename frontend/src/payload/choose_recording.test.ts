import { describe, expect, it } from "vitest";
import { chooseProgram, chooseMemory, memorySpaceName } from "./choose_recording";
import type { Summary } from "./generated/answers";

function recording(host: string, title: string, memory: string, peak_bytes: number): Summary {
  return {
    id: `run|${host}|${title}|${memory}`,
    kind: "program",
    title,
    run: "run",
    host,
    memory,
    axis: "PROGRAM_ORDER",
    length: 1,
    time_ns: null,
    end_ns: null,
    step: null,
    allocations: 1,
    peak_bytes,
    peak_position: 0,
    reserved_bytes: peak_bytes,
    reported_peak_bytes: null,
    capacity_bytes: null,
    capacity_source: "",
    live: false,
    interval_ns: null,
    reason: null,
    caveats: [],
  };
}

const RUN = [
  recording("b", "jit_step(7)", "HBM", 900),
  recording("a", "jit_step(7)", "HBM", 800),
  recording("b", "jit_eval(9)", "HBM", 300),
  recording("b", "jit_step(7)", "VMEM", 40),
];

const ANY = { host: "", module: "", space: "" };

describe("chooseProgram", () => {
  it("defaults to the largest peak", () => {
    const { chosen, hosts, modules, spaces } = chooseProgram(RUN, ANY);
    expect(chosen?.id).toBe("run|b|jit_step(7)|HBM");
    expect(hosts).toEqual(["a", "b"]);
    expect(modules.map((module) => module.title)).toEqual(["jit_step(7)", "jit_eval(9)"]);
    expect(spaces.map((space) => space.memory)).toEqual(["HBM", "VMEM"]);
  });

  it("offers only the memory spaces that the module uses", () => {
    expect(chooseProgram(RUN, { ...ANY, module: "jit_eval(9)" }).spaces.map((space) => space.memory)).toEqual(
      ["HBM"],
    );
  });

  it("accepts a module without its program id and a memory space by XProf's number", () => {
    const { chosen } = chooseProgram(RUN, { host: "b", module: "jit_step", space: "1" });
    expect(chosen?.id).toBe("run|b|jit_step(7)|VMEM");
  });

  it("reports what is missing and keeps the lists of options", () => {
    expect(chooseProgram(RUN, { ...ANY, module: "jit_gone" }).missing).toBe(
      "This run has no HLO module jit_gone.",
    );
    expect(chooseProgram(RUN, { ...ANY, module: "jit_gone" }).modules).toHaveLength(2);
    expect(chooseProgram(RUN, { ...ANY, space: "SMEM" }).missing).toBe("jit_step(7) uses no memory in SMEM.");
    expect(chooseProgram(RUN, { ...ANY, host: "z" }).missing).toBe("This run has no programs of host z.");
    expect(chooseProgram(RUN, ANY).missing).toBeNull();
  });

  it("has no options in an empty run", () => {
    expect(chooseProgram([], ANY)).toEqual({
      hosts: [],
      modules: [],
      spaces: [],
      chosen: null,
      missing: null,
    });
  });
});

describe("chooseMemory", () => {
  const chooseAllocator = chooseMemory("TIME");

  const allocator = (host: string, memory: string, peak: number, capacity: number | null): Summary => ({
    ...recording(host, "allocator", memory, peak),
    kind: "allocator",
    axis: "TIME",
    capacity_bytes: capacity,
  });
  const run = [
    recording("a", "jit_step(7)", "HBM", 800),
    allocator("a", "GPU_10_bfc", 90, 1000),
    allocator("a", "GPU_2_bfc", 500, 1000),
    allocator("a", "gpu_host_bfc", 600, 10_000),
    allocator("b", "unknown", 700, null),
  ];

  it("defaults to the fullest memory, sorts names numerically and lists no modules", () => {
    const { chosen, hosts, modules, spaces } = chooseAllocator(run, ANY);
    expect(chosen?.memory).toBe("GPU_2_bfc");
    expect(hosts).toEqual(["a", "b"]);
    expect(modules).toEqual([]);
    expect(spaces.map((space) => space.memory)).toEqual(["GPU_2_bfc", "GPU_10_bfc", "gpu_host_bfc"]);
  });

  it("reports what is missing", () => {
    expect(chooseAllocator(run, { ...ANY, host: "a", space: "GPU_3_bfc" }).missing).toBe(
      "a has no memory GPU_3_bfc.",
    );
    expect(chooseAllocator(run, { ...ANY, host: "z" }).missing).toBe(
      "This tab has no data of host z in this run.",
    );
    expect(chooseAllocator([run[0]], ANY)).toMatchObject({ chosen: null, missing: null });
  });
});

describe("memorySpaceName", () => {
  it("translates XProf's numbers and keeps names", () => {
    expect(["0", "5", "9", "VMEM", ""].map(memorySpaceName)).toEqual([
      "HBM",
      "Host",
      "Memory space 9",
      "VMEM",
      "",
    ]);
  });
});
