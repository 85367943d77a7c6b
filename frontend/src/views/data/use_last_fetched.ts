import { useRef } from "preact/hooks";
import type { Fetched } from "./use_fetched";
import { useFetched } from "./use_fetched";

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
