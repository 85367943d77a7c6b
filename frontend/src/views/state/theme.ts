import { useEffect, useState } from "preact/hooks";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import { hostWindow } from "../browser/host_window";
import type { ViewState } from "./view_state";

/** The theme is a personal preference: the browser stores it, and shared URLs omit it. */
const KEY = "tb-memplugin-theme";

export function readStoredTheme(): ViewState["theme"] {
  try {
    const theme = localStorage.getItem(KEY);
    return theme === "light" || theme === "dark" ? theme : "auto";
  } catch {
    // The browser may block storage; the page then follows the host or the system.
    return "auto";
  }
}

function storeTheme(theme: ViewState["theme"]): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // As above.
  }
}

const system = window.matchMedia("(prefers-color-scheme: dark)");

/** TensorBoard has its own theme switch, which sets a class on its body. */
function isHostDark(): boolean {
  const { body } = hostWindow().document;
  return body.classList.contains("dark-mode") || system.matches;
}

/** Return true for the dark theme: the user's choice, or else that of the host or the system. */
export function useDark(store: Store<ViewState>): boolean {
  const theme = useStore(store, (state) => state.theme);
  const [hostDark, setHostDark] = useState(isHostDark);
  useEffect(() => storeTheme(theme), [theme]);
  useEffect(() => {
    const update = (): void => setHostDark(isHostDark());
    const observer = new MutationObserver(update);
    observer.observe(hostWindow().document.body, { attributeFilter: ["class"] });
    system.addEventListener("change", update);
    return () => {
      observer.disconnect();
      system.removeEventListener("change", update);
    };
  }, []);
  return theme === "auto" ? hostDark : theme === "dark";
}
