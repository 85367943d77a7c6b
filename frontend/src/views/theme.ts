import { useEffect, useState } from "preact/hooks";
import type { Store } from "../base/store";
import { useStore } from "../base/store";
import { hostWindow } from "./host_window";
import type { ViewState } from "./state";

const system = window.matchMedia("(prefers-color-scheme: dark)");

/** TensorBoard has a switch of its own and marks its body with it. */
function surroundingsDark(): boolean {
  const { body } = hostWindow().document;
  return body.classList.contains("dark-mode") || system.matches;
}

/** Whether the page is dark: what was chosen, else what is around it. */
export function useDark(store: Store<ViewState>): boolean {
  const theme = useStore(store, (state) => state.theme);
  const [around, setAround] = useState(surroundingsDark);
  useEffect(() => {
    const update = (): void => setAround(surroundingsDark());
    const observer = new MutationObserver(update);
    observer.observe(hostWindow().document.body, { attributeFilter: ["class"] });
    system.addEventListener("change", update);
    return () => {
      observer.disconnect();
      system.removeEventListener("change", update);
    };
  }, []);
  return theme === "auto" ? around : theme === "dark";
}
