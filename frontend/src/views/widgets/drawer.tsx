import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

interface Props {
  title: string;
  label: string;
  testid: string;
  onClose: () => void;
  children: ComponentChildren;
}

/** Side panel for the selected item. Focus returns to where it was when the panel closes. */
export function Drawer({ title, label, testid, onClose, children }: Props): JSX.Element {
  const place = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    const { activeElement: before } = document;
    const node = place.current;
    return () => {
      if (before instanceof HTMLElement && node?.contains(document.activeElement) === true) before.focus();
    };
  }, []);
  return (
    <aside ref={place} class="details" data-testid={testid} aria-label={label}>
      <header>
        <h2>{title}</h2>
        <button class="quiet" aria-label="Close" title="Close ( Esc )" onClick={onClose}>
          ×
        </button>
      </header>
      {children}
    </aside>
  );
}

/** Label and value; a missing value shows as unknown. */
export function Fact({ name, children }: { name: string; children: ComponentChildren }): JSX.Element {
  const empty = children === false || children === null || children === "";
  return (
    <>
      <dt>{name}</dt>
      <dd>{empty ? <span class="muted">none in the profile</span> : children}</dd>
    </>
  );
}
