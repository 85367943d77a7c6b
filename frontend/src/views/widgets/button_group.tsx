import type { ComponentChildren, JSX } from "preact";

interface Props {
  label: string;
  testid?: string;
  /** Further classes. */
  look?: string;
  children: ComponentChildren;
}

/** Buttons that stand together, and are read out as what they are for. */
export function ButtonGroup({ label, testid, look = "", children }: Props): JSX.Element {
  return (
    <span class={`buttons ${look}`} role="group" aria-label={label} data-testid={testid}>
      {children}
    </span>
  );
}
