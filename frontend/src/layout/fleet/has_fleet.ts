import type { Run, Summary } from "../../payload/generated/answers";

/** Return whether the sessions of a run's folder have several hosts: each host may name a session by its own clock. */
export function hasHosts(runs: readonly Run[], run: string): boolean {
  const folder = folderOf(run);
  const hosts = new Set<string>();
  for (const { name, hosts: found } of runs)
    if (name === run || (folder !== "" && folderOf(name) === folder))
      for (const host of found) hosts.add(host);
  return hosts.size > 1;
}

/** Return whether a host has several devices: memories whose names differ in a number. */
export function hasDevices(recordings: readonly Summary[]): boolean {
  const found = new Map<string, string>();
  return recordings.some(({ axis, host, memory }) => {
    if (axis === "PROGRAM_ORDER") return false;
    const kind = `${host}|${memory.replaceAll(/\d+/g, "*")}`;
    const first = found.get(kind) ?? memory;
    found.set(kind, first);
    return first !== memory;
  });
}

function folderOf(run: string): string {
  return run.slice(0, Math.max(run.lastIndexOf("/"), 0));
}
