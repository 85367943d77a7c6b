import { type ComponentChildren, createContext, type FunctionComponent } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";
import { isTyping } from "../../base/input";

/** True for the contents of a picture that fills the window. */
const FullWindowContext = createContext(false);

export function useFullWindow(): boolean {
  return useContext(FullWindowContext);
}

interface Props {
  /** Name of the picture, such as "flame graph". */
  of: string;
  children: ComponentChildren;
}

/** A picture that fills the window with the key f, pressed over it or with the focus in it, until f or Escape. */
export function FullWindow({ of, children }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const [full, setFull] = useState(false);
  useEffect(() => {
    const isMeant = (): boolean => {
      const { current: node } = place;
      // An inner picture is meant rather than the one around it.
      const [inner] = [...document.querySelectorAll(".picture:hover")].slice(-1);
      return node !== null && (full || inner === node || node.contains(document.activeElement));
    };
    const onKeyDown = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
      if (document.querySelector("dialog[open]") !== null) return;
      const toggles = event.key === "f" ? isMeant() : event.key === "Escape" && full;
      if (!toggles) return;
      event.preventDefault();
      event.stopPropagation();
      setFull(!full);
    };
    // Before the keys of the picture and the page.
    document.addEventListener("keydown", onKeyDown, true);
    return () => document.removeEventListener("keydown", onKeyDown, true);
  }, [full]);
  return (
    <div ref={place} class={full ? "picture in-full-window" : "picture"} data-testid="picture">
      <button
        class="quiet full-window"
        aria-pressed={full}
        aria-label={full ? "Leave the full window" : `Show the ${of} in the full window`}
        title={full ? "Leave the full window ( f )" : "Full window ( f )"}
        data-testid="full-window"
        onClick={() => setFull(!full)}
      >
        {full ? "×" : "⤢"}
      </button>
      <FullWindowContext.Provider value={full}>{children}</FullWindowContext.Provider>
    </div>
  );
}

/** Return a picture that can fill the window, and reads whether it does. */
export function inFullWindow<Props extends object>(of: string, Picture: FunctionComponent<Props>) {
  return (props: Props) => (
    <FullWindow of={of}>
      <Picture {...props} />
    </FullWindow>
  );
}

/** Icon of the buttons that show a chart in the full window. */
export function FullWindowIcon() {
  return (
    <svg width="12" height="12" viewBox="0 0 12 12" aria-hidden="true">
      <path d="M1 4V1h3M8 1h3v3M11 8v3H8M4 11H1V8" fill="none" stroke="currentColor" stroke-width="1.6" />
    </svg>
  );
}
