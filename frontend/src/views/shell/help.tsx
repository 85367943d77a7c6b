import { useEffect, useRef } from "preact/hooks";
import { TERMS } from "../../payload/generated/glossary";

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
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog
      ref={dialog}
      class="help"
      aria-label="Help"
      onClose={onClose}
      onClick={(event) => {
        // A click on the dialog itself is one on its backdrop; the content is in a wrapper.
        if (event.target === event.currentTarget) onClose();
      }}
    >
      <div class="help-body">
        <header>
          <h2>Help</h2>
          <button class="quiet" aria-label="Close" onClick={onClose}>
            ×
          </button>
        </header>
        <Section entries={KEYS} />
        <Section entries={POINTER} />
        <Glossary />
      </div>
    </dialog>
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
