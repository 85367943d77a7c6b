import { isTyping } from "../../base/input";
import { TERMS } from "../../payload/generated/glossary";
import type { Positions } from "../data/use_recording";
import { store, type ViewState } from "../state/view_state";
import { Dialog } from "../widgets/dialog";

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

const KEYS: readonly (readonly [string, string])[] = [
  ["/", "search in the timeline and the table"],
  ["n  N", "next and previous match; without a search, next and previous buffer at the inspected position"],
  ["[  ]", "inspect the previous, next position"],
  ["p", "inspect the peak"],
  ["Enter", "keep the current match in the panel; in a picker: open the list, pick"],
  ["Esc", "close this help, the full window, or the selection"],
  ["W  S", "zoom in, zoom out, in the chart with the pointer or the focus; with Shift in larger steps"],
  ["A  D", "pan left, pan right, in the same"],
  ["+  \u2212  0", "zoom in, zoom out, reset zoom, in the focused chart"],
  ["\u2190 \u2192 \u2191 \u2193", "move within the focused chart, table or tab bar"],
  ["Alt +  Alt \u2212", "zoom the byte axis of the focused chart"],
  ["Enter  Esc", "in a flame graph, treemap or tree table: zoom to the node, zoom out"],
  ["o", "in the same: filter all charts by the node; also Shift + click"],
  ["c", "in the same: show callers and callees of the node's function"],
  ["f", "the chart with the pointer or the focus in the full window: on, off"],
  ["Ctrl + V", "open an out-of-memory error; a file dropped on the page opens too"],
  ["t", "theme: light, dark, system"],
  ["?", "this help"],
];

const POINTER: readonly (readonly [string, string])[] = [
  [
    "Click",
    "on the usage chart: inspect that position; on a buffer: keep it in the panel, select it in all charts",
  ],
  ["Wheel", "scroll the page; in the full window: zoom at the pointer"],
  ["Ctrl + wheel", "zoom a chart at the pointer, as a pinch does; in the full window: both axes"],
  ["Alt + wheel", "zoom the byte axis"],
  ["Shift + wheel", "pan a chart, as a sideways wheel does"],
  ["Drag", "pan; when fully zoomed out: zoom to the selected range"],
  ["Shift + drag", "zoom to the selected range"],
  ["drag on the x axis", "select a range: charts and tables below are about what is live in it"],
  ["Double click", "reset zoom; on a block of the timeline: zoom to that block"],
];

export function Help({ onClose }: { onClose: () => void }) {
  return (
    <Dialog
      title="Help"
      onClose={onClose}
      onClick={(event) => {
        if (event.target === event.currentTarget) onClose();
      }}
    >
      <Section entries={KEYS} />
      <Section entries={POINTER} />
      <Glossary />
    </Dialog>
  );
}

function Section({ entries }: { entries: readonly (readonly [string, string])[] }) {
  return (
    <dl>
      {entries.map(([keys, meaning]) => (
        <>
          <dt>
            {keys.split("  ").map((key) => (
              <kbd key={key}>{key}</kbd>
            ))}
          </dt>
          <dd>{meaning}</dd>
        </>
      ))}
    </dl>
  );
}

/** Terms of the page; a figure's own definition is its tooltip. */
function Glossary() {
  return (
    <details class="glossary" data-testid="glossary">
      <summary>Glossary</summary>
      <dl>
        {TERMS.map(([term, meaning]) => (
          <>
            <dt>{term}</dt>
            <dd>{meaning}</dd>
          </>
        ))}
      </dl>
    </details>
  );
}
