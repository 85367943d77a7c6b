import { useEffect, useRef, useState } from "preact/hooks";
import { asError } from "../../base/errors";
import type { Api } from "../../payload/api";
import type { Listing, Runs } from "../../payload/generated/answers";
import type { Fleet } from "../../payload/responses/fleet";
import type { Fetched } from "../data/use_fetched";

/** Time between two questions while the server reads, which has news once a second. */
const EVERY_MS = 1000;

/** Ask for the capture that contains a run until the server has read it; each answer has what was read so far. */
export function useFleet(api: Api, run: string): Fetched<Fleet> {
  return usePolled(
    run,
    (signal) => api.fleet({ capture: run }, signal),
    ({ meta }) => meta.running,
  );
}

/** Ask again and again while `isRunning`; a new key starts anew. */
export function usePolled<T>(
  key: string,
  ask: (signal: AbortSignal) => Promise<T>,
  isRunning: (answer: T) => boolean,
): Fetched<T> {
  const [state, setState] = useState<Fetched<T>>({ value: null, error: null });
  useEffect(() => {
    setState({ value: null, error: null });
    const abort = new AbortController();
    let timer = 0;
    const go = (): void => {
      ask(abort.signal).then(
        (value) => {
          if (abort.signal.aborted) return;
          setState({ value, error: null });
          if (isRunning(value)) timer = window.setTimeout(go, EVERY_MS);
        },
        (error: unknown) => {
          if (!abort.signal.aborted) setState({ value: null, error: asError(error) });
        },
      );
    };
    go();
    return () => {
      abort.abort();
      window.clearTimeout(timer);
    };
    // `ask` is a new closure at every render; `key` identifies the question.
  }, [key]);
  return state;
}

/** Return whether a run, or the capture that it belongs to, has several hosts or devices, as the server answers. */
export function useHasFleet(runs: Runs | null, run: string, listing: Listing | null): boolean {
  // Tabs without a list of recordings keep the last answer.
  const known = useRef(new Set<string>());
  const sessions = runs?.runs.find(({ name }) => name === run)?.sessions ?? 1;
  if (sessions > 1 || listing?.has_fleet === true) known.current.add(run);
  return known.current.has(run);
}
