import type { ComponentChildren, TargetedEvent } from "preact";
import { useEffect, useRef } from "preact/hooks";

type DropHandler = (event: TargetedEvent<HTMLDialogElement, DragEvent>) => void;

interface Props {
  /** Heading, and another name for screen readers where the heading is too long. */
  title: string;
  label?: string;
  look?: string;
  testid?: string;
  onClose: () => void;
  onClick?: (event: TargetedEvent<HTMLDialogElement>) => void;
  onDragOver?: DropHandler;
  onDrop?: DropHandler;
  children: ComponentChildren;
}

/** Dialog over the page, which Escape closes. The content is in a wrapper: the dialog itself is its backdrop. */
export function Dialog({ title, label = title, look = "help", testid, onClose, children, ...on }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class={look} aria-label={label} data-testid={testid} onClose={onClose} {...on}>
      <div class="help-body">
        <header>
          <h2>{title}</h2>
          <button class="quiet" aria-label="Close" onClick={onClose}>
            ×
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}
