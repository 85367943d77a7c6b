import type { Run, Runs } from "./generated/answers";

/** Return the host whose recordings are listed, of a run that is read host by host; empty where those of all hosts are. */
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

/** Return the host in a recording's id, `run|host|title|memory`. Names may contain any character. */
export function hostOfId(runs: Runs, run: string, id: string): string {
  const found = hostsOf(runs, run).filter((host) => id.startsWith(`${run}|${host}|`));
  return found.sort((x, y) => y.length - x.length)[0] ?? "";
}
