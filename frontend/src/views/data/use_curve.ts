import { useEffect, useRef, useState } from "preact/hooks";
import type { Api } from "../../payload/api";
import type { FirstView, RecordingData } from "../../payload/recording/recording";

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
            setState({ curve: null, error: error instanceof Error ? error : new Error(String(error)) });
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
