import type { ComponentChildren } from "preact";
import { store, useViewState } from "../state/view_state";

interface ButtonGroupProps {
  label: string;
  testid?: string;
  /** Additional CSS classes. */
  look?: string;
  children: ComponentChildren;
}

/** Group of buttons with a label for screen readers. */
export function ButtonGroup({ label, testid, look = "", children }: ButtonGroupProps) {
  return (
    <span class={`buttons ${look}`} role="group" aria-label={label} data-testid={testid}>
      {children}
    </span>
  );
}

interface Props<Value extends string> {
  label: string;
  testid: string;
  options: readonly { value: Value; label: string; about: string }[];
  value: Value;
  onPick: (value: Value) => void;
}

/** Choice of one option, all visible. */
export function Choice<Value extends string>({ label, testid, options, value, onPick }: Props<Value>) {
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

/** Choice of one option in a list, for toolbars without room for all of them. */
export function Select<Value extends string>({ label, testid, options, value, onPick }: Props<Value>) {
  return (
    <select
      aria-label={label}
      data-testid={testid}
      value={value}
      title={`${label}: ${options.find((option) => option.value === value)?.about ?? ""}`}
      onChange={({ currentTarget: { value: picked } }) => {
        const option = options.find((each) => each.value === picked);
        if (option !== undefined) onPick(option.value);
      }}
    >
      {options.map((option) => (
        <option key={option.value} value={option.value} title={option.about}>
          {option.label}
        </option>
      ))}
    </select>
  );
}

const AXES = [
  { value: "events", label: "Events", about: "Equally spaced events; bursts are spread out" },
  { value: "time", label: "Time", about: "Time since the recording began" },
] as const;

const RANGES = [
  { value: "peak", label: "To the peak", about: "From zero to the peak" },
  { value: "capacity", label: "To capacity", about: "From zero to the capacity" },
  { value: "fit", label: "Fit", about: "Range of the visible part; does not start at zero" },
] as const;

const PROGRAM_AXES = [
  { value: "events", label: "Positions", about: "Equally spaced instructions" },
  { value: "time", label: "Time", about: "Each instruction as long as it takes" },
] as const;

/** Choice of what the x axis of charts is. */
export function AxisChoice({ program }: { program: boolean }) {
  const axis = useViewState((state) => state.axis);
  return (
    <Select
      label="X axis"
      testid="axis-choice"
      options={program ? PROGRAM_AXES : AXES}
      value={axis}
      onPick={(picked) => store.set({ axis: picked })}
    />
  );
}

/** Choice of the top of an allocator's usage chart; `capacity`: the memory's is known. */
export function RangeChoice({ capacity }: { capacity: boolean }) {
  const range = useViewState((state) => state.usage_range);
  return (
    <Select
      label="Y axis"
      testid="range-choice"
      options={RANGES.filter(({ value }) => capacity || value !== "capacity")}
      value={range}
      onPick={(picked) => store.set({ usage_range: picked, usage_zoom: null })}
    />
  );
}

/** Labeled checkbox. */
export function Toggle(props: {
  label: string;
  title?: string;
  on: boolean;
  onChange: (on: boolean) => void;
}) {
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
