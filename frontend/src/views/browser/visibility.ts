import type { Visibility } from "../../base/poller";

/** Whether the page is visible: its window, and in TensorBoard and XProf also the frame that it is shown in. */
export const PAGE_VISIBILITY: Visibility = {
  // A frame in a tab of TensorBoard that is not open has no width.
  isHidden: () => document.hidden || window.innerWidth === 0,
  subscribe: (listener) => {
    document.addEventListener("visibilitychange", listener);
    window.addEventListener("resize", listener);
    return () => {
      document.removeEventListener("visibilitychange", listener);
      window.removeEventListener("resize", listener);
    };
  },
};
