import type { Visibility } from "../../base/poller";

const FRAME_MS = 1000;

/** Whether the page is visible: its window, and in TensorBoard and XProf also the frame that it is shown in. */
export const PAGE_VISIBILITY: Visibility = {
  isHidden: () => document.hidden || isFrameHidden(),
  subscribe: (listener) => {
    document.addEventListener("visibilitychange", listener);
    // No event tells a page that its frame is hidden.
    let was = isFrameHidden();
    const timer = setInterval(() => {
      const is = isFrameHidden();
      if (is !== was) listener();
      was = is;
    }, FRAME_MS);
    return () => {
      document.removeEventListener("visibilitychange", listener);
      clearInterval(timer);
    };
  },
};

/** Return whether the host hides the frame: TensorBoard keeps those of its other tabs. */
function isFrameHidden(): boolean {
  try {
    return window.frameElement?.checkVisibility({ visibilityProperty: true }) === false;
  } catch {
    // The host has another origin.
    return false;
  }
}
