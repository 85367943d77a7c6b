import type { ComponentChildren, JSX } from "preact";

interface Props {
  label: string;
  testid?: string;
  /** Additional CSS classes. */
  look?: string;
  children: ComponentChildren;
}

/** Group of buttons with a label for screen readers. */
export function ButtonGroup({ label, testid, look = "", children }: Props): JSX.Element {
  return (
    <span class={`buttons ${look}`} role="group" aria-label={label} data-testid={testid}>
      {children}
    </span>
  );
}
