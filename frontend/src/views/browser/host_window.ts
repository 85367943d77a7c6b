import type { XprofBridge } from "../../base/xprof_bridge";

/**
 * The outermost window, whose URL users copy and whose theme surrounds the page. TensorBoard and XProf show the page
 * in a frame of their own origin; elsewhere it is the page's own window.
 */
export function hostWindow(): Window {
  try {
    if (window.parent !== window && window.parent.location.origin === window.location.origin)
      return window.parent;
  } catch {
    // The parent has another origin, so it cannot be read.
  }
  return window;
}

/** Return whether XProf shows the page, in place of one of its tools. */
export function isInXprof(): boolean {
  return xprofBridge() !== null;
}

/** Return the connection to XProf where XProf shows the page; null elsewhere. */
export function xprofBridge(): XprofBridge | null {
  return hostWindow() === window ? null : (hostWindow().tbMemplugin ?? null);
}
