import { useEffect } from "preact/hooks";
import type { Api } from "../../payload/api";
import type { RecordingData, FirstView } from "../../payload/recording/recording";
import type { Fetched } from "./use_fetched";
import { useFetched } from "./use_fetched";

export type PageState = "loading" | "ready" | "error";

/** What keys that move the inspected position need to know. */
export interface Positions {
  peak: number;
  length: number;
}

export type OnPageState = (state: PageState, steps: Positions | null) => void;

interface LoadingRecording {
  /** What there is to see at once. */
  first: Fetched<FirstView>;
  /** Asked for only after that, so that it does not have to wait in line. */
  all: Fetched<RecordingData>;
}

/** What a page of one recording is made of, as it comes. */
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
