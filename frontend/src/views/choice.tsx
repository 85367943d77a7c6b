import type { JSX } from "preact";

interface Props<Value extends string> {
  label: string;
  testid: string;
  options: readonly { value: Value; label: string; about: string }[];
  value: Value;
  onPick: (value: Value) => void;
}

/** One of a few, all in sight. */
export function Choice<Value extends string>(props: Props<Value>): JSX.Element {
  const { label, testid, options, value, onPick } = props;
  return (
    <span class="buttons choice" role="group" aria-label={label} data-testid={testid}>
      {options.map((option) => (
        <button
          key={option.value}
          aria-pressed={option.value === value}
          title={option.about}
          onClick={() => onPick(option.value)}
        >
          {option.label}
        </button>
      ))}
    </span>
  );
}
