import { useMemo, useRef } from "preact/hooks";
import { hasDevices, hasHosts } from "../../layout/fleet/has_fleet";
import type { Listing, Runs } from "../../payload/generated/answers";

/** Return whether a run and its sessions have several hosts or devices. */
export function useHasFleet(runs: Runs | null, run: string, listing: Listing | null): boolean {
  // Tabs without a list of recordings keep the last answer.
  const known = useRef(new Set<string>());
  const hosts = useMemo(() => hasHosts(runs?.runs ?? [], run), [runs, run]);
  const devices = useMemo(() => hasDevices(listing?.recordings ?? []), [listing]);
  if (hosts || devices) known.current.add(run);
  return known.current.has(run);
}
