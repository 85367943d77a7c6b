import { useRef } from "preact/hooks";
import { finerWindow } from "../../layout/usage/usage_series";
import type { Span } from "../../layout/axis/span";
import type { Api } from "../../payload/api";
import type { FirstView } from "../../payload/recording/recording";
import type { Usage } from "../../payload/recording/usage";
import { useFetched } from "../data/use_fetched";

/** Buckets per request: twice the pixels of a wide chart, over up to eight times the visible range. */
const BUCKETS = 8192;

interface WindowedUsage {
  usage: Usage;
  end: number;
}

/** Return the usage to draw: of the whole axis, or at a finer resolution for the visible range. */
export function useUsage(api: Api, view: FirstView, zoom: Span): WindowedUsage {
  const { id } = view.recording;
  const finer = finerWindow(zoom, view.length, view.usage.length);
  // The length changes while a job runs.
  const key = finer === null ? null : `${id} ${finer[0]} ${finer[1]} ${view.length}`;
  const fetched = useFetched(key, async (_, signal) => {
    const [from, to] = finer ?? [0, view.length];
    return { id, from, end: to, usage: await api.usage({ id, from, to, buckets: BUCKETS }, signal) };
  });
  // Until a new range has loaded, the previous one is still finer where it applies.
  const last = useRef(fetched.value);
  if (fetched.value !== null) last.current = fetched.value;
  const fits =
    finer !== null &&
    last.current !== null &&
    last.current.id === id &&
    last.current.from <= zoom[0] &&
    last.current.end >= zoom[1];
  return fits && last.current !== null ? last.current : { usage: view.usage, end: view.length };
}
