import { useEffect, useState } from "preact/hooks";
import type { Store } from "../base/store";
import { useStore } from "../base/store";
import type { ViewState } from "./state";

const system = window.matchMedia("(prefers-color-scheme: dark)");

/** Whether the page is dark: what was chosen, else what the system says. */
export function useDark(store: Store<ViewState>): boolean {
  const theme = useStore(store, (state) => state.theme);
  const [systemDark, setSystemDark] = useState(system.matches);
  useEffect(() => {
    const update = (): void => setSystemDark(system.matches);
    system.addEventListener("change", update);
    return () => system.removeEventListener("change", update);
  }, []);
  return theme === "auto" ? systemDark : theme === "dark";
}
