import { useEffect } from "preact/hooks";
import type { Api } from "../../payload/api";
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
}

/** Load the data of one recording, in the order of need. */
export function useRecording(
  api: Api,
  id: string,
  read: (id: string, signal: AbortSignal) => Promise<FirstView>,
  onState: OnPageState,
): LoadingRecording {
  const first = useFetched(id, read);
  const all = useFetched(first.value === null ? null : id, (key, signal) => api.rows({ id: key }, signal));
  const error = first.error ?? all.error;
  const ready = first.value !== null && all.value !== null;
  useEffect(() => {
    onState(error !== null ? "error" : ready ? "ready" : "loading", first.value);
  }, [error, ready, first.value]);
  return { first, all };
}
