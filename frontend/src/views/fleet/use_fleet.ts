import { useEffect, useState } from "preact/hooks";
import type { Api } from "../../payload/api";
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
          if (!abort.signal.aborted)
            setState({ value: null, error: error instanceof Error ? error : new Error(String(error)) });
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
