import { useEffect, useReducer } from "preact/hooks";
import type { Visibility } from "../../base/poller";
import type { SidebarLists, XprofBridge } from "../../base/xprof_bridge";

/**
 * The outermost window, whose URL users copy and whose theme surrounds the page. TensorBoard and XProf show the page
 * in a frame of their own origin; elsewhere it is the page's own window, also in a notebook's output.
 */
export function hostWindow(): Window {
  try {
    if (
      window.parent !== window &&
      notebookTheme() === null &&
      window.parent.location.origin === window.location.origin
    )
      return window.parent;
  } catch {
    // The parent has another origin, so it cannot be read.
  }
  return window;
}

/** Return the theme of the notebook that shows the page in an output; null elsewhere. */
export function notebookTheme(): string | null {
  return window.frameElement?.getAttribute("data-notebook-theme") ?? null;
}

/** Return whether XProf shows the page, in place of one of its tools. */
export function isInXprof(): boolean {
  return xprofBridge() !== null;
}

/** Return the connection to XProf where XProf shows the page; null elsewhere. */
export function xprofBridge(): XprofBridge | null {
  return hostWindow() === window ? null : (hostWindow().tbMemplugin ?? null);
}

const NO_LISTS: SidebarLists = { runs: null, hosts: null };

/** Return what XProf's sidebar beside the page offers for a run; nulls elsewhere. */
export function useSidebar(run: string): SidebarLists {
  const [, again] = useReducer((count: number) => count + 1, 0);
  useEffect(() => xprofBridge()?.subscribe(() => again(undefined)), []);
  return xprofBridge()?.lists(run) ?? NO_LISTS;
}

/** Interval between looks at the frame. */
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
