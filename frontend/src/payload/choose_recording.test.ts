import { describe, expect, it } from "vitest";
import { chooseMemory, chooseProgram, listedHost, memorySpaceName, placeOfId } from "./choose_recording";
import type { Runs, Summary } from "./generated/answers";
import { makeRun, makeSummary } from "./responses/fixture";

function recording(host: string, title: string, memory: string, peak_bytes: number): Summary {
  const sizes = { peak_bytes, reserved_bytes: peak_bytes };
  return makeSummary(`run|${host}|${title}|${memory}`, { title, host, memory, ...sizes });
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

  it("opens no program where a name is that of several files", () => {
    const run = ["a", "b"].map((file) => recording("", `jit_step (${file})`, "HBM", 900));
    const choose = (module: string) => chooseProgram(run, { ...ANY, module });
    for (const name of ["jit_step", "jit_step(7)"])
      expect(choose(name)).toMatchObject({
        chosen: null,
        missing: `2 programs of this run are of the HLO module ${name}.`,
      });
    expect(choose("jit_step (b)").chosen?.id).toBe("run||jit_step (b)|HBM");
    expect(choose("jit_step (gone)").missing).toBe("This run has no HLO module jit_step (gone).");
    expect(chooseProgram(RUN, { ...ANY, module: "jit_step(8)" }).chosen).toBeNull();
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
      module: "",
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

  it("defaults to a device before the host of a watched job", () => {
    const watched = [allocator("a", "host", 900, 1000), allocator("a", "cpu:0", 10, null)];
    expect(chooseAllocator(watched, ANY).chosen?.memory).toBe("cpu:0");
    expect(chooseAllocator(watched.slice(0, 1), ANY).chosen?.memory).toBe("host");
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

describe("recordings of one host and memory", () => {
  const run = ["snapshot", "timeline"].map((title) => ({
    ...recording("rank0", title, "cuda:0", 90),
    kind: "torch_snapshot",
    axis: "TIME",
  }));
  const choose = (module: string) => chooseMemory("TIME")(run, { host: "rank0", module, space: "cuda:0" });

  it("are chosen by their titles, which the URL then needs", () => {
    expect(choose("timeline")).toMatchObject({ chosen: { title: "timeline" }, module: "timeline" });
    expect(choose("")).toMatchObject({ chosen: null, missing: "rank0 has 2 recordings of memory cuda:0." });
    expect(chooseMemory("TIME")(run.slice(1), { host: "", module: "", space: "" })).toMatchObject({
      chosen: { title: "timeline" },
      module: "",
    });
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
