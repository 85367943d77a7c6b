import { useMemo } from "preact/hooks";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import type { Axis } from "../../layout/axis/axis";
import { positionAxis, timeAxis } from "../../layout/axis/axis";
import type { FirstView } from "../../payload/recording/recording";
import type { Program } from "../../payload/recording/program";
import type { ViewState } from "../state/view_state";

/** Return the x axis of all charts. The time axis needs the timestamps of all events, which load with the rows. */
export function useAxis(store: Store<ViewState>, view: FirstView, program: Program | null): Axis {
  const wanted = useStore(store, (state) => state.axis);
  const times = wanted === "time" ? (program?.time_ns ?? null) : null;
  return useMemo(() => (times === null ? positionAxis(view.length) : timeAxis(times)), [times, view.length]);
}
