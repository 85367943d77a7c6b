import { isTyping } from "../../base/input";
import type { Positions } from "../data/use_recording";
import { store, type ViewState } from "../state/view_state";

interface Keys {
  /** Positions of the recording; null without one. */
  steps: () => Positions | null;
  onHelp: () => void;
}

const THEMES = ["auto", "light", "dark"] as const;

export function nextTheme(theme: ViewState["theme"]): ViewState["theme"] {
  return THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
}

/** Listen to keys wherever the focus is, except while typing. Return a function that stops listening. */
export function bindKeys({ steps, onHelp }: Keys): () => void {
  const step = (by: number): void => {
    const shown = steps();
    if (shown === null) return;
    const position = Math.min(Math.max((store.get().position ?? shown.peak) + by, 0), shown.length - 1);
    store.set({ position: position === shown.peak ? null : position });
  };
  const escape = (): void => {
    const { timeline_only: full, selected, selected_change: change, selected_function: picked } = store.get();
    const { fit_candidate: candidate } = store.get();
    if (selected !== null) store.set({ selected: null });
    else if (change !== "") store.set({ selected_change: "" });
    else if (picked !== "") store.set({ selected_function: "" });
    else if (candidate !== "") store.set({ fit_candidate: "" });
    else if (full) store.set({ timeline_only: false });
  };
  const actions: Partial<Record<string, () => void>> = {
    "?": onHelp,
    "[": () => step(-1),
    "]": () => step(1),
    p: () => store.set({ position: null }),
    f: () => store.set({ timeline_only: !store.get().timeline_only }),
    t: () => store.set({ theme: nextTheme(store.get().theme) }),
    "/": () => document.querySelector<HTMLElement>("input[type=search]")?.focus(),
    Escape: escape,
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    // An open dialog covers the page and closes itself on Escape, unless that is prevented.
    if (document.querySelector("dialog[open]") !== null) return;
    if (isTyping(event)) {
      if (event.key === "Escape" && event.target instanceof HTMLElement) event.target.blur();
      return;
    }
    const action = actions[event.key];
    if (action === undefined) return;
    event.preventDefault();
    action();
  };
  document.addEventListener("keydown", onKeyDown);
  return () => document.removeEventListener("keydown", onKeyDown);
}
