import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import type { FirstView } from "../../payload/recording/recording";
import type { ViewState } from "./view_state";

/** The inspected position: the peak unless another was chosen. A URL may bring one from a longer program. */
export function usePosition(store: Store<ViewState>, view: FirstView): number {
  const position = useStore(store, (state) => state.position);
  return Math.min(position ?? view.peak, Math.max(view.length - 1, 0));
}
