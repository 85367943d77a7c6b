import { useContext } from "preact/hooks";
import type { Store } from "../../base/store";
import { hostWindow, notebookTheme } from "../browser/host_window";
import { PrintingContext } from "../browser/printing";
import { readStored, writeStored } from "../browser/storage";
import { useViewState, type ViewState } from "./view_state";

/** The theme is a personal preference: the browser stores it, and shared URLs omit it. */
const KEY = "tb-memplugin-theme";

export function readStoredTheme(): ViewState["theme"] {
  const theme = readStored(KEY);
  return theme === "light" || theme === "dark" ? theme : "auto";
}

const systemTheme = (): MediaQueryList => window.matchMedia("(prefers-color-scheme: dark)");

/** TensorBoard has its own theme switch, which sets a class on its body. Elsewhere the system's theme counts. */
function readHostTheme(): boolean {
  const { document } = hostWindow();
  const isTensorBoard = document.querySelector("tb-webapp") !== null;
  const isDarkHost = document.body.classList.contains("dark-mode") || notebookTheme() === "dark";
  return isDarkHost || (!isTensorBoard && systemTheme().matches);
}

/** Follow the theme of TensorBoard and of the system, whichever changed last, and remember the user's choice. */
export function bindTheme(store: Store<ViewState>): void {
  store.fill({ host_dark: readHostTheme() });
  const observer = new MutationObserver(() => store.fill({ host_dark: readHostTheme() }));
  observer.observe(hostWindow().document.body, { attributeFilter: ["class"] });
  const system = systemTheme();
  system.addEventListener("change", () => store.fill({ host_dark: system.matches }));
  store.subscribe((before) => {
    const { theme } = store.get();
    if (theme !== before.theme) writeStored(KEY, theme);
  });
}

/** Return true for the dark theme: the user's choice, or else that of the host or the system. */
export function isDark({ theme, host_dark: hostDark }: ViewState): boolean {
  return theme === "auto" ? hostDark : theme === "dark";
}

/** Return true where the page is dark; on paper it is light. */
export function useDark(): boolean {
  const printing = useContext(PrintingContext);
  return useViewState(isDark) && !printing;
}

/** Set the theme of the page. Charts read its colors in their layout effects, so it must be set before those. */
export function applyTheme(dark: boolean): void {
  document.documentElement.dataset["theme"] = dark ? "dark" : "light";
}
