import { useEffect, useState } from "preact/hooks";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import { hostWindow } from "../browser/host_window";
import type { ViewState } from "./view_state";

/** A matter of taste, so it stays with the browser and is no part of a shared URL. */
const KEY = "tb-memplugin-theme";

export function readStoredTheme(): ViewState["theme"] {
  try {
    const theme = localStorage.getItem(KEY);
    return theme === "light" || theme === "dark" ? theme : "auto";
  } catch {
    // Storage can be forbidden; the page then starts as its surroundings are.
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

/** TensorBoard has a switch of its own and marks its body with it. */
function isHostDark(): boolean {
  const { body } = hostWindow().document;
  return body.classList.contains("dark-mode") || system.matches;
}

/** Whether the page is dark: what was chosen, else what is around it. */
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
