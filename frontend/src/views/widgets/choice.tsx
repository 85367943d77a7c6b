import type { JSX } from "preact";
import { ButtonGroup } from "./button_group";

interface Props<Value extends string> {
  label: string;
  testid: string;
  options: readonly { value: Value; label: string; about: string }[];
  value: Value;
  onPick: (value: Value) => void;
}

/** Choice of one option, all visible. */
export function Choice<Value extends string>(props: Props<Value>): JSX.Element {
  const { label, testid, options, value, onPick } = props;
  return (
    <ButtonGroup label={label} testid={testid} look="choice">
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
    </ButtonGroup>
  );
}
