import { byNumber } from "../base/sort";
import type { Run, Runs, Summary } from "./generated/answers";
import { HOST_MEMORY, MEMORY_SPACES } from "./generated/constants";

/** The user's selection. An empty field selects the recording with the largest peak. */
export interface RecordingChoice {
  host: string;
  module: string;
  space: string;
}

/** Return the name of a memory space that is given by name or by XProf's number. */
export function memorySpaceName(space: string): string {
  if (!/^\d+$/.test(space)) return space;
  return (MEMORY_SPACES as readonly (string | undefined)[])[Number(space)] ?? `Memory space ${space}`;
}

export interface RecordingOptions {
  hosts: string[];
  /** Modules of the selected host, largest peak first: each is represented by its largest memory space. */
  modules: Summary[];
  /** Memory spaces of the selected module. */
  spaces: Summary[];
  chosen: Summary | null;
  /** What the URL needs beside host and memory to name the chosen one. */
  module: string;
  /** Message for the page when the selection does not exist. */
  missing: string | null;
}

/** Select one memory space of one program of a run. `recordings` are sorted by peak, largest first. */
export function chooseProgram(
  recordings: Summary[],
  { host, module, space }: RecordingChoice,
): RecordingOptions {
  const programs = recordings.filter((recording) => recording.kind === "program");
  const hosts = distinct(programs.map((recording) => recording.host)).sort(byNumber);
  const chosenHost = host === "" ? programs[0]?.host : host;
  const onHost = programs.filter((recording) => recording.host === chosenHost);
  const modules = distinct(onHost.map((recording) => recording.title)).flatMap(
    (title) => onHost.find((recording) => recording.title === title) ?? [],
  );
  const matches = module === "" ? modules.slice(0, 1) : findModules(modules, module);
  const chosenModule = matches.length === 1 ? matches[0].title : undefined;
  const spaces = onHost.filter((recording) => recording.title === chosenModule);
  const wanted = memorySpaceName(space);
  const chosen = wanted === "" ? spaces[0] : spaces.find((recording) => recording.memory === wanted);
  return {
    hosts,
    modules,
    spaces,
    chosen: chosen ?? null,
    module: chosenModule ?? module,
    missing: missing(),
  };

  function missing(): string | null {
    if (programs.length === 0 || chosen !== undefined) return null;
    if (onHost.length === 0) return `This run has no programs of host ${host}.`;
    if (matches.length > 1) return `${matches.length} programs of this run are of the HLO module ${module}.`;
    if (chosenModule === undefined) return `This run has no HLO module ${module}.`;
    return `${chosenModule} uses no memory in ${wanted}.`;
  }
}

/**
 * Return a function that selects one recording along an axis. There are no modules to choose from, and the
 * fullest memory comes first. A standalone file, such as a snapshot, counts as a host.
 */
export function chooseMemory(axis: "TIME" | "INSTANT") {
  return (recordings: Summary[], { host, module, space }: RecordingChoice): RecordingOptions => {
    const fullest = recordings
      .filter((recording) => recording.axis === axis)
      .sort((a, b) => isHost(a) - isHost(b) || fullness(b) - fullness(a));
    const hosts = distinct(fullest.map((recording) => recording.host)).sort(byNumber);
    const chosenHost = host === "" ? fullest[0]?.host : host;
    const onHost = fullest.filter((recording) => recording.host === chosenHost);
    const spaces = onHost.slice().sort((a, b) => byNumber(a.memory, b.memory));
    const found =
      space === "" ? onHost.slice(0, 1) : onHost.filter((recording) => recording.memory === space);
    const titled = module === "" ? found : found.filter((recording) => recording.title === module);
    const chosen = titled.length === 1 ? titled[0] : null;
    const isNamed = onHost.filter((recording) => recording.memory === chosen?.memory).length > 1;
    return {
      hosts,
      modules: [],
      spaces,
      chosen,
      module: isNamed && chosen !== null ? chosen.title : "",
      missing: missing(),
    };

    function missing(): string | null {
      if (fullest.length === 0 || chosen !== null) return null;
      if (onHost.length === 0) return `This tab has no data of host ${host} in this run.`;
      if (titled.length > 1) return `${chosenHost} has ${titled.length} recordings of memory ${space}.`;
      return `${chosenHost} has no memory ${[module, space].filter(Boolean).join(", ")}.`;
    }
  };
}

/** Return 1 for the host of a watched job, whose devices come first; else 0. */
const isHost = ({ memory }: Summary): number => Number(memory === HOST_MEMORY);

/** Return the share of the capacity in use at the peak; unknown capacities sort last. */
function fullness({ peak_bytes, capacity_bytes }: Summary): number {
  return capacity_bytes === null || capacity_bytes === 0 ? 0 : peak_bytes / capacity_bytes;
}

/** Return the module with a title, or else all with a name: some links have no program id, or are of fewer files. */
function findModules(modules: Summary[], name: string): Summary[] {
  const titled = modules.filter(({ title }) => title === name);
  if (titled.length > 0) return titled;
  const bare = name.replace(PROGRAM_ID, "");
  // Another id is that of another program.
  const nameOf = (title: string): string => (bare === name ? title.replace(PROGRAM_ID, "") : title);
  return modules.filter(({ title }) => nameOf(title).replace(FILE, "") === bare);
}

/** Ends of titles: a program's id on the device, and what tells files with equal modules apart. */
const PROGRAM_ID = /(?<=\S)\(\d+\)$/;
const FILE = / \(.*\)$/;

function distinct(texts: string[]): string[] {
  return [...new Set(texts)];
}

/** Return the listed host of a run that is read host by host; empty if all hosts are listed. */
export function listedHost(runs: Runs | null, run: string, host: string): string {
  const found = runNamed(runs, run);
  return found?.by_host === true && found.hosts.includes(host) ? host : "";
}

/** Return all hosts of a run. */
export function hostsOf(runs: Runs | null, run: string): readonly string[] {
  return runNamed(runs, run)?.hosts ?? [];
}

function runNamed(runs: Runs | null, run: string): Run | undefined {
  return runs?.runs.find(({ name }) => name === run);
}

/** Return the run and the host in a recording's id, `run|host|title|memory`. Names may contain any character. */
export function placeOfId(runs: Runs, id: string): { run: string; host: string } {
  const names = runs.runs.map(({ name }) => name);
  const run = longestStart(id, "", names);
  return { run, host: longestStart(id, `${run}|`, hostsOf(runs, run)) };
}

/** Return the longest of the names that comes after `before` in an id, up to a separator; empty if none does. */
function longestStart(id: string, before: string, names: readonly string[]): string {
  const found = names.filter((name) => id.startsWith(`${before}${name}|`));
  return found.sort((x, y) => y.length - x.length)[0] ?? "";
}
