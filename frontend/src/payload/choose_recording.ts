import type { Summary } from "./recording/summary";

/** What a person may pick; empty means "the one with the largest peak". */
export interface RecordingChoice {
  host: string;
  module: string;
  space: string;
}

/** Names that XProf's links use for memory spaces, by number. */
const MEMORY_SPACES = ["HBM", "VMEM", "Sflag", "CMEM", "SMEM", "Host", "SparseCore"];

/** The name of a memory space given by name or by XProf's number. */
export function memorySpaceName(space: string): string {
  if (!/^\d+$/.test(space)) return space;
  return MEMORY_SPACES[Number(space)] ?? `Memory space ${space}`;
}

export interface RecordingOptions {
  hosts: string[];
  /** Of the chosen host, largest peak first: one per module, its largest memory space. */
  modules: Summary[];
  /** Of the chosen module. */
  spaces: Summary[];
  chosen: Summary | null;
  /** What was asked for and is not there, in words for the page. */
  missing: string | null;
}

/** Narrows the programs of a run (largest peak first) to one memory space of one of them. */
export function chooseProgram(
  recordings: Summary[],
  { host, module, space }: RecordingChoice,
): RecordingOptions {
  const programs = recordings.filter((recording) => recording.kind === "program");
  const hosts = distinct(programs.map((recording) => recording.host)).sort();
  const chosenHost = host === "" ? programs[0]?.host : host;
  const onHost = programs.filter((recording) => recording.host === chosenHost);
  const modules = distinct(onHost.map((recording) => recording.title)).flatMap(
    (title) => onHost.find((recording) => recording.title === title) ?? [],
  );
  const chosenModule = (module === "" ? modules[0] : findModule(modules, module))?.title;
  const spaces = onHost.filter((recording) => recording.title === chosenModule);
  const wanted = memorySpaceName(space);
  const chosen = wanted === "" ? spaces[0] : spaces.find((recording) => recording.memory === wanted);
  return { hosts, modules, spaces, chosen: chosen ?? null, missing: missing() };

  function missing(): string | null {
    if (programs.length === 0 || chosen !== undefined) return null;
    if (onHost.length === 0) return `This run has no programs of host ${host}.`;
    if (chosenModule === undefined) return `This run has no HLO module ${module}.`;
    return `${chosenModule} keeps nothing in ${wanted}.`;
  }
}

/**
 * Narrows the recordings along an axis to one memory: there is no module to choose, and the fullest comes first. A file
 * that stands for itself, such as a snapshot, is a host here.
 */
export function chooseMemory(axis: "TIME" | "INSTANT") {
  return (recordings: Summary[], { host, space }: RecordingChoice): RecordingOptions => {
    const fullest = recordings
      .filter((recording) => recording.axis === axis)
      .sort((a, b) => fullness(b) - fullness(a));
    const hosts = distinct(fullest.map((recording) => recording.host)).sort(byNumber);
    const chosenHost = host === "" ? fullest[0]?.host : host;
    const onHost = fullest.filter((recording) => recording.host === chosenHost);
    const spaces = onHost.slice().sort((a, b) => byNumber(a.memory, b.memory));
    const chosen = space === "" ? onHost[0] : onHost.find((recording) => recording.memory === space);
    return { hosts, modules: [], spaces, chosen: chosen ?? null, missing: missing() };

    function missing(): string | null {
      if (fullest.length === 0 || chosen !== undefined) return null;
      if (onHost.length === 0) return `This run has nothing of ${host} to show here.`;
      return `${chosenHost} has no memory ${space}.`;
    }
  };
}

/** Share of the capacity that was in use at the peak; unknown capacities come last. */
function fullness({ peak_bytes, capacity_bytes }: Summary): number {
  return capacity_bytes === null || capacity_bytes === 0 ? 0 : peak_bytes / capacity_bytes;
}

/** As people count: GPU_2 before GPU_10. */
const byNumber = new Intl.Collator("en", { numeric: true }).compare;

/** By its title, or by its name without the program id, as some links have it. */
function findModule(modules: Summary[], name: string): Summary | undefined {
  return (
    modules.find((module) => module.title === name) ??
    modules.find((module) => module.title.replace(/\(\d+\)$/, "") === name)
  );
}

function distinct(texts: string[]): string[] {
  return [...new Set(texts)];
}
