import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

interface Props {
  title: string;
  label: string;
  testid: string;
  onClose: () => void;
  children: ComponentChildren;
}

/** Side panel for the selected item. Focus returns to where it was when the panel closes. */
export function Drawer({ title, label, testid, onClose, children }: Props) {
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

/** Label and value; nothing without a value. */
export function Fact({
  name,
  about,
  children,
}: {
  name: string;
  about?: string;
  children: ComponentChildren;
}) {
  if (children === false || children === null || children === "") return null;
  return (
    <>
      <dt>{name}</dt>
      <dd title={about}>{children}</dd>
    </>
  );
}
