import { useRef } from "preact/hooks";
import type { Listing, Runs } from "../../payload/generated/answers";

/** Return whether a run, or the capture that it belongs to, has several hosts or devices, as the server answers. */
export function useHasFleet(runs: Runs | null, run: string, listing: Listing | null): boolean {
  // Tabs without a list of recordings keep the last answer.
  const known = useRef(new Set<string>());
  const sessions = runs?.runs.find(({ name }) => name === run)?.sessions ?? 1;
  if (sessions > 1 || listing?.has_fleet === true) known.current.add(run);
  return known.current.has(run);
}
