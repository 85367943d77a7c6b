import { useEffect, useState } from "preact/hooks";

export interface Fetched<T> {
  value: T | null;
  error: Error | null;
}

/** Fetch whenever `key` changes, and drop the value of the previous key at once. A null key fetches nothing. */
export function useFetched<T>(
  key: string | null,
  fetch: (key: string, signal: AbortSignal) => Promise<T>,
): Fetched<T> {
  const [state, setState] = useState<Fetched<T> & { key: string | null }>({ key, value: null, error: null });
  useEffect(() => {
    if (key === null) return;
    const abort = new AbortController();
    fetch(key, abort.signal).then(
      (value) => {
        if (!abort.signal.aborted) setState({ key, value, error: null });
      },
      (error: unknown) => {
        if (!abort.signal.aborted)
          setState({ key, value: null, error: error instanceof Error ? error : new Error(String(error)) });
      },
    );
    return () => abort.abort();
    // `fetch` is a new closure at every render; `key` identifies the request.
  }, [key]);
  return state.key === key ? state : { value: null, error: null };
}
