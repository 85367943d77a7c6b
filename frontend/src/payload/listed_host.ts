import type { Runs } from "./generated/answers";

/** Runs with more hosts are read host by host, once a host is chosen: a thousand of them would take minutes. */
const MANY_HOSTS = 16;
/** A file that one process saved after another, as capture names them: it counts as a host, but is none. */
const SNAPSHOT = /^memory_\d+$/;

/** Return the host whose recordings are listed; empty where those of all hosts are. */
export function listedHost(runs: Runs | null, run: string, host: string): string {
  const hosts = hostsOf(runs, run);
  const isMany = hosts.filter((name) => !SNAPSHOT.test(name)).length > MANY_HOSTS;
  return isMany && hosts.includes(host) ? host : "";
}

/** Return all hosts of a run. */
export function hostsOf(runs: Runs | null, run: string): readonly string[] {
  return runs?.runs.find(({ name }) => name === run)?.hosts ?? [];
}

/** Return the host in a recording's id, `run|host|title|memory`. Names may contain any character. */
export function hostOfId(runs: Runs, run: string, id: string): string {
  const found = hostsOf(runs, run).filter((host) => id.startsWith(`${run}|${host}|`));
  return found.sort((x, y) => y.length - x.length)[0] ?? "";
}
