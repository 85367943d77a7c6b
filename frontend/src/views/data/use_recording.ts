import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { asError } from "../../base/errors";
import type { Api } from "../../payload/api";
import { keepColumns } from "../../payload/recording/lifetimes";
import type { FirstView, RecordingData } from "../../payload/recording/recording";
import type { Addresses, Regions, Rows } from "../../payload/recording/rows";
import { type Fetched, useFetched } from "./use_fetched";

/**
 * The rows a chart may draw: all of them, or until these have come, the largest ones at the peak. Charts work on
 * indices into `rows`; the state speaks of row numbers.
 */
export interface AvailableRows {
  rows: Rows;
  complete: boolean;
  /** Null until all rows have loaded. */
  regions: Regions | null;
  places: Addresses;
  numberOf(index: number): number;
  /** Index of a row number; -1 if the row is not loaded. */
  indexOf(row: number | null): number;
}

export function availableRows(view: FirstView, everything: RecordingData | null): AvailableRows {
  if (everything !== null) return allRows(everything);
  return {
    rows: view.rows,
    complete: false,
    regions: null,
    places: view.addresses,
    numberOf: (index) => view.row[index],
    indexOf: (row) => (row === null ? -1 : view.row.indexOf(row)),
  };
}

export function allRows({ rows, regions, addresses }: RecordingData): AvailableRows {
  return {
    rows,
    complete: true,
    regions,
    places: addresses,
    numberOf: (index) => index,
    indexOf: (row) => (row !== null && row < rows.length ? row : -1),
  };
}

export type PageState = "loading" | "ready" | "error";

/** Positions for the keys that move the inspected position. */
export interface Positions {
  peak: number;
  length: number;
}

export type OnPageState = (state: PageState, steps: Positions | null) => void;

/** What all pages are given. */
export interface PageProps {
  api: Api;
  onState: OnPageState;
}

/** Report whether a page is complete, or its error, and the positions that it shows. Null reports nothing. */
export function usePageState(
  onState: OnPageState | null,
  error: Error | null,
  complete: boolean,
  shown: Positions | null = null,
): void {
  const state = error !== null ? "error" : complete ? "ready" : "loading";
  // At once, so that "ready" is never said of what the URL meant before.
  useLayoutEffect(() => {
    if (state === "loading") onState?.(state, shown);
  }, [onState === null, state]);
  // After the effects of the page's parts, which draw.
  useEffect(() => onState?.(state, shown), [onState === null, state, shown]);
}

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
  usePageState(onState, first.error ?? all.error, first.value !== null && all.value !== null, first.value);
  return { first, all, early: early.value };
}

/** A curve with the times of its samples. */
export interface Curve {
  view: FirstView;
  data: RecordingData;
  times: Float64Array;
}

interface Loading {
  /** Stays while the next one loads. */
  curve: Curve | null;
  /** Null with a curve. */
  error: Error | null;
}

/**
 * Load the curve of a recording, and again when its `version` changes. `beforeNext` is called before the shown curve is
 * replaced.
 */
export function useCurve(
  api: Api,
  id: string,
  version: string,
  beforeNext: (last: Curve, next: Curve) => void,
): Loading {
  const [state, setState] = useState<Loading>({ curve: null, error: null });
  const [loading, setLoading] = useState<string | null>(null);
  const shown = useRef<Curve | null>(null);
  const loaded = useRef<string | null>(null);
  // A version that comes while another one loads waits: on a slow connection, none would load otherwise.
  const wanted = loading ?? (loaded.current === version ? null : version);
  useEffect(() => {
    if (wanted === null) return;
    setLoading(wanted);
    const abort = new AbortController();
    loadCurve(api, id, abort.signal)
      .then(
        (curve) => {
          if (abort.signal.aborted) return;
          if (shown.current !== null) beforeNext(shown.current, curve);
          shown.current = curve;
          setState({ curve, error: null });
        },
        (error: unknown) => {
          // The next version may load.
          if (!abort.signal.aborted && shown.current === null)
            setState({ curve: null, error: asError(error) });
        },
      )
      .finally(() => {
        if (abort.signal.aborted) return;
        loaded.current = wanted;
        setLoading(null);
      });
    return () => abort.abort();
  }, [api, id, wanted]);
  return state;
}

async function loadCurve(api: Api, id: string, signal: AbortSignal): Promise<Curve> {
  // One after the other: the second finds what the first has read.
  const view = await api.memoryProfile({ id }, signal);
  const data = await api.rows({ id }, signal);
  return { view, data, times: data.program.time_ns ?? new Float64Array(0) };
}
