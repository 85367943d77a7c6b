import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import type { FirstView } from "../../payload/recording/recording";
import type { ViewState } from "./view_state";

/** Return the inspected position, by default the peak. Positions past the end, from a URL, are clamped. */
export function usePosition(store: Store<ViewState>, view: FirstView): number {
  const position = useStore(store, (state) => state.position);
  return Math.min(position ?? view.peak, Math.max(view.length - 1, 0));
}
