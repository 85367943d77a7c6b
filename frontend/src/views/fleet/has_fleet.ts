import { useMemo } from "preact/hooks";
import type { Listing, Runs } from "../../payload/generated/answers";

/** Return whether the logdir has several hosts, or the run several devices. */
export function useHasFleet(runs: Runs | null, listing: Listing | null): boolean {
  const hosts = useMemo(() => new Set(runs?.runs.flatMap((run) => run.hosts)).size, [runs]);
  const devices = useMemo(() => {
    const measured = listing?.recordings.filter(({ axis }) => axis !== "PROGRAM_ORDER") ?? [];
    return new Set(measured.map(({ host, memory }) => `${host}|${memory}`)).size;
  }, [listing]);
  return hosts > 1 || devices > 1;
}
