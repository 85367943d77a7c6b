import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

const KEYS: readonly (readonly [string, string])[] = [
  ["/", "search buffers, in the timeline and the table at once"],
  ["n  N", "next and previous match; without a search, next buffer at the inspected position"],
  ["[  ]", "inspect the position before, after"],
  ["p", "inspect the peak"],
  ["Enter", "select the current match"],
  ["Esc", "close what is open: this help, the full window, the selection, what is looked at"],
  ["+  \u2212  0", "zoom in, out, to all, in the chart that has the focus"],
  ["\u2190 \u2192 \u2191 \u2193", "move in the chart, table or line of tabs that has the focus"],
  ["Alt +  Alt \u2212", "zoom the chart that has the focus in bytes"],
  ["Enter  Esc", "in a flame graph, treemap or tree table: zoom to the node, and out again"],
  ["o", "there: confine all charts to that node; so does Shift + click"],
  ["f", "timeline over the whole window, and back"],
  ["t", "light, dark, or as the system says"],
  ["?", "this help"],
];

const POINTER: readonly (readonly [string, string])[] = [
  ["Click", "on the curve: inspect that position; on a buffer: select it everywhere"],
  ["Wheel", "zoom at the pointer; with Shift, or sideways: move along"],
  ["Alt + wheel", "zoom the chart in bytes; on the timeline with Ctrl: both ways"],
  ["Drag", "move what is in sight; where all is in sight already: zoom to what was marked"],
  ["Shift + drag", "zoom to what was marked"],
  ["Double click", "zoom to all; on a block of the timeline: to that block"],
];

export function Help({ onClose }: { onClose: () => void }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog
      ref={dialog}
      class="help"
      aria-label="Keyboard and pointer"
      onClose={onClose}
      onClick={(event) => {
        // The backdrop belongs to the dialog; its content is wrapped.
        if (event.target === event.currentTarget) onClose();
      }}
    >
      <div class="help-body">
        <header>
          <h2>Keyboard and pointer</h2>
          <button class="quiet" aria-label="Close" onClick={onClose}>
            ×
          </button>
        </header>
        <Section entries={KEYS} />
        <Section entries={POINTER} />
      </div>
    </dialog>
  );
}

function Section({ entries }: { entries: readonly (readonly [string, string])[] }): JSX.Element {
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
