import { describe, expect, it } from "vitest";
import { chooseProgram, chooseMemory, memorySpaceName } from "./choose_recording";
import type { Summary } from "./recording/summary";

function recording(host: string, title: string, memory: string, peak_bytes: number): Summary {
  return {
    id: `run|${host}|${title}|${memory}`,
    kind: "program",
    title,
    run: "run",
    host,
    memory,
    axis: "PROGRAM_ORDER",
    allocations: 1,
    peak_bytes,
    peak_position: 0,
    reserved_bytes: peak_bytes,
    reported_peak_bytes: null,
    capacity_bytes: null,
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

describe("choose", () => {
  it("starts with the largest peak of all", () => {
    const { chosen, hosts, modules, spaces } = chooseProgram(RUN, ANY);
    expect(chosen?.id).toBe("run|b|jit_step(7)|HBM");
    expect(hosts).toEqual(["a", "b"]);
    expect(modules.map((module) => module.title)).toEqual(["jit_step(7)", "jit_eval(9)"]);
    expect(spaces.map((space) => space.memory)).toEqual(["HBM", "VMEM"]);
  });

  it("offers only the spaces that the module uses", () => {
    expect(chooseProgram(RUN, { ...ANY, module: "jit_eval(9)" }).spaces.map((space) => space.memory)).toEqual(
      ["HBM"],
    );
  });

  it("takes a module without its program id and a space by XProf's number", () => {
    const { chosen } = chooseProgram(RUN, { host: "b", module: "jit_step", space: "1" });
    expect(chosen?.id).toBe("run|b|jit_step(7)|VMEM");
  });

  it("says what is missing, and keeps the lists to choose from", () => {
    expect(chooseProgram(RUN, { ...ANY, module: "jit_gone" }).missing).toBe(
      "This run has no HLO module jit_gone.",
    );
    expect(chooseProgram(RUN, { ...ANY, module: "jit_gone" }).modules).toHaveLength(2);
    expect(chooseProgram(RUN, { ...ANY, space: "SMEM" }).missing).toBe("jit_step(7) keeps nothing in SMEM.");
    expect(chooseProgram(RUN, { ...ANY, host: "z" }).missing).toBe("This run has no programs of host z.");
    expect(chooseProgram(RUN, ANY).missing).toBeNull();
  });

  it("has nothing to choose from in an empty run", () => {
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

  it("starts with the fullest, lists as people count, and knows no programs", () => {
    const { chosen, hosts, modules, spaces } = chooseAllocator(run, ANY);
    expect(chosen?.memory).toBe("GPU_2_bfc");
    expect(hosts).toEqual(["a", "b"]);
    expect(modules).toEqual([]);
    expect(spaces.map((space) => space.memory)).toEqual(["GPU_2_bfc", "GPU_10_bfc", "gpu_host_bfc"]);
  });

  it("says what is missing", () => {
    expect(chooseAllocator(run, { ...ANY, host: "a", space: "GPU_3_bfc" }).missing).toBe(
      "a has no memory GPU_3_bfc.",
    );
    expect(chooseAllocator(run, { ...ANY, host: "z" }).missing).toBe(
      "This run has nothing of z to show here.",
    );
    expect(chooseAllocator([run[0]], ANY)).toMatchObject({ chosen: null, missing: null });
  });
});

describe("spaceName", () => {
  it("names XProf's numbers and leaves names alone", () => {
    expect(["0", "5", "9", "VMEM", ""].map(memorySpaceName)).toEqual([
      "HBM",
      "Host",
      "Memory space 9",
      "VMEM",
      "",
    ]);
  });
});
