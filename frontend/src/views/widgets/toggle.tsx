import type { JSX } from "preact";

/** Labeled checkbox. */
export function Toggle(props: {
  label: string;
  title?: string;
  on: boolean;
  onChange: (on: boolean) => void;
}): JSX.Element {
  return (
    <label class="toggle" title={props.title ?? ""}>
      <input
        type="checkbox"
        checked={props.on}
        onChange={(event) => props.onChange(event.currentTarget.checked)}
      />
      {props.label}
    </label>
  );
}
