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

/** Return the run and the host in a recording's id, `run|host|title|memory`. Names may contain any character. */
export function placeOfId(runs: Runs, id: string): { run: string; host: string } {
  const run = longestStart(
    id,
    "",
    runs.runs.map(({ name }) => name),
  );
  return { run, host: longestStart(id, `${run}|`, hostsOf(runs, run)) };
}

/** Return the longest name with which a text goes on after another one, up to a separator; empty if there is none. */
function longestStart(id: string, before: string, names: readonly string[]): string {
  const found = names.filter((name) => id.startsWith(`${before}${name}|`));
  return found.sort((x, y) => y.length - x.length)[0] ?? "";
}
