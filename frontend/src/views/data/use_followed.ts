import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { startPolling } from "../../base/poller";
import type { Api, Changes } from "../../payload/api";
import { Unchanged } from "../../payload/server";
import { PAGE_VISIBILITY } from "../browser/visibility";
import type { Fetched } from "./use_fetched";

/** Times of answers, in ms since 1970; they change without a render. */
export interface Answers {
  /** Of the last answer, also of one without news. */
  last: number;
  /** Of the last answer that changed the value; null before the second value. */
  changed: number | null;
  /** Questions without an answer since then. */
  failures: number;
}

export interface Followed<T> extends Fetched<T> {
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
      const failed = error instanceof Error ? error : new Error(String(error));
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
