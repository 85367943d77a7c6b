import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { asError } from "../../base/errors";
import { startPolling } from "../../base/poller";
import type { Api, Changes } from "../../payload/api";
import { Unchanged } from "../../payload/server";
import { PAGE_VISIBILITY } from "../browser/host_window";

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
        if (!abort.signal.aborted) setState({ key, value: null, error: asError(error) });
      },
    );
    return () => abort.abort();
    // `fetch` is a new closure at every render; `key` identifies the request.
  }, [key]);
  return state.key === key ? state : { value: null, error: null };
}

/** Like useFetched, but keep the previous value until the next has loaded, so that charts do not flicker. */
export function useLastFetched<T>(
  key: string | null,
  fetch: (key: string, signal: AbortSignal) => Promise<T>,
): Fetched<T> & { waiting: boolean } {
  const fetched = useFetched(key, fetch);
  const last = useRef<T | null>(null);
  if (fetched.value !== null) last.current = fetched.value;
  return { ...fetched, value: last.current, waiting: fetched.value === null && fetched.error === null };
}

/** Return the error of the last attempt, null without one, and a function that begins an attempt. */
export function useAttempt(): [error: Error | null, attempt: (started: Promise<void>) => void] {
  const [error, setError] = useState<Error | null>(null);
  const attempt = (started: Promise<void>): void => {
    setError(null);
    started.catch((reason: unknown) => setError(asError(reason)));
  };
  return [error, attempt];
}

/** Times of answers, in ms since 1970; they change without a render. */
export interface Answers {
  /** Of the last answer, also of one without news. */
  last: number;
  /** Of the last answer that changed the value; null before the second value. */
  changed: number | null;
  /** Questions without an answer since then. */
  failures: number;
}

interface Followed<T> extends Fetched<T> {
  answers: { readonly current: Answers };
}

/**
 * Fetch whenever `key` changes, as useFetched does, and then ask every `interval(value)` ms for changes; null asks
 * for none. A value stays until there is another one, also where asking fails.
 */
export function useFollowed<T>(
  api: Api,
  key: string | null,
  fetch: (changes: Changes, key: string, signal: AbortSignal) => Promise<T>,
  interval: (value: T | null) => number | null,
): Followed<T> {
  const [state, setState] = useState<Fetched<T> & { key: string | null }>({ key, value: null, error: null });
  const answers = useRef<Answers>(NO_ANSWERS);
  const changes = useMemo(() => ({ current: api.changes() }), [api, key]);
  const shown = state.key === key ? state : NOTHING;

  /** Return true for a new value. */
  const ask = async (asked: string, signal: AbortSignal): Promise<boolean> => {
    const before = answers.current;
    try {
      const value = await fetch(changes.current, asked, signal);
      if (signal.aborted) return false;
      const now = Date.now();
      answers.current = { last: now, changed: before.last === 0 ? null : now, failures: 0 };
      setState({ key: asked, value, error: null });
      return true;
    } catch (error) {
      if (signal.aborted) return false;
      if (error instanceof Unchanged) {
        answers.current = { ...before, last: Date.now(), failures: 0 };
        return false;
      }
      // The answer may have come without its end, and must be sent again.
      changes.current = api.changes();
      answers.current = { ...before, failures: before.failures + 1 };
      const failed = asError(error);
      setState((last) =>
        last.key === asked && last.value !== null ? last : { key: asked, value: null, error: failed },
      );
      throw error;
    }
  };
  useEffect(() => {
    answers.current = NO_ANSWERS;
    if (key === null) return;
    const abort = new AbortController();
    ask(key, abort.signal).catch(() => undefined);
    return () => abort.abort();
    // `fetch` is a new closure at every render; `key` identifies the request.
  }, [key]);

  const settled = shown.value !== null || shown.error !== null;
  const intervalMs = settled ? interval(shown.value) : null;
  useEffect(() => {
    if (key === null || intervalMs === null) return;
    return startPolling({ ask: (signal) => ask(key, signal), intervalMs, visibility: PAGE_VISIBILITY });
  }, [key, intervalMs]);
  return { ...shown, answers };
}

const NOTHING = { value: null, error: null };
const NO_ANSWERS: Answers = { last: 0, changed: null, failures: 0 };
