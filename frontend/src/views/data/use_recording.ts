import { useEffect, useMemo } from "preact/hooks";
import type { Api } from "../../payload/api";
import { keepColumns } from "../../payload/recording/lifetimes";
import type { RecordingData, FirstView } from "../../payload/recording/recording";
import type { Fetched } from "./use_fetched";
import { useFetched } from "./use_fetched";

export type PageState = "loading" | "ready" | "error";

/** Positions for the keys that move the inspected position. */
export interface Positions {
  peak: number;
  length: number;
}

export type OnPageState = (state: PageState, steps: Positions | null) => void;

interface LoadingRecording {
  /** The first view: figures, usage and the largest rows. */
  first: Fetched<FirstView>;
  /** All rows; requested after the first view, which must not wait for them. */
  all: Fetched<RecordingData>;
  /** All rows with their lifetimes only, which load in a fraction of the time; null where they do not load. */
  early: RecordingData | null;
}

/** Load the data of one recording, in the order of need; with `hasEarly`, its lifetimes along with the first view. */
export function useRecording(
  api: Api,
  id: string,
  read: (id: string, signal: AbortSignal) => Promise<FirstView>,
  onState: OnPageState,
  hasEarly = false,
): LoadingRecording {
  const first = useFetched(id, read);
  const early = useFetched(hasEarly ? id : null, (key, signal) => api.lifetimes({ id: key }, signal));
  const waits = first.value === null || (hasEarly && early.value === null && early.error === null);
  const fetched = useFetched(waits ? null : id, (key, signal) => api.rows({ id: key }, signal));
  const all = useMemo(
    () => ({ ...fetched, value: fetched.value && keepColumns(fetched.value, early.value) }),
    [fetched.value, fetched.error, early.value],
  );
  const error = first.error ?? all.error;
  const ready = first.value !== null && all.value !== null;
  useEffect(() => {
    onState(error !== null ? "error" : ready ? "ready" : "loading", first.value);
  }, [error, ready, first.value]);
  return { first, all, early: early.value };
}
