import type { JSX } from "preact";

/** Clipboard icon. */
export function PasteIcon(): JSX.Element {
  return (
    <svg class="sign" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d="M5.5 3H3.5v11h9V3h-2M5.5 2h5v2.5h-5zM6 8h4M6 10.5h4" />
    </svg>
  );
}
