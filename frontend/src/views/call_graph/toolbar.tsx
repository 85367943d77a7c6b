import type { JSX } from "preact";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import { Choice } from "../widgets/choice";
import { Toggle } from "../widgets/toggle";
import type { ViewState } from "../state/view_state";
import { useDraft } from "../browser/use_draft";

const GRANULARITY = [
  {
    value: "function",
    label: "Function",
    about: "Functions of one name are one box, whatever file they are in",
  },
  {
    value: "filefunction",
    label: "Function in file",
    about: "Functions of one name in two files are two boxes",
  },
  { value: "file", label: "File", about: "A box for each file" },
  { value: "line", label: "Line", about: "A box for each line" },
] as const;

const DEVICES = [
  { value: "one", label: "This device", about: "What is on the device chosen above" },
  { value: "all", label: "All devices", about: "All devices of the file, and its executables, together" },
] as const;

const PATTERNS = [
  {
    key: "focus",
    label: "Focus",
    about: "Keep the stacks in which a function or file matches this regular expression",
  },
  { key: "ignore", label: "Ignore", about: "Leave out the stacks in which a function or file matches" },
  {
    key: "hide",
    label: "Hide",
    about: "Take the functions that match out of the stacks, and keep their bytes",
  },
] as const;

interface Props {
  devices: number;
  store: Store<ViewState>;
  /** Nobody is there to confine it by expressions. */
  fixed: boolean;
}

/** What the call graph is of, as pprof's options of these names have it. */
export function Toolbar({ devices, store, fixed }: Props): JSX.Element {
  const calls = useStore(store, (state) => state.granularity);
  const frames = useStore(store, (state) => state.framework_frames);
  const whole = useStore(store, (state) => state.all_devices);
  return (
    <div class="toolbar">
      <Choice
        label="One box is"
        testid="granularity"
        options={GRANULARITY}
        value={calls}
        onPick={(picked) => store.set({ granularity: picked, selected_function: "" })}
      />
      {devices > 1 && (
        <Choice
          label="Devices"
          testid="devices"
          options={DEVICES}
          value={whole ? "all" : "one"}
          onPick={(picked) => store.set({ all_devices: picked === "all" })}
        />
      )}
      {!fixed && PATTERNS.map((pattern) => <Pattern key={pattern.key} pattern={pattern} store={store} />)}
      <Toggle
        label="Frames of frameworks"
        title="JAX's own frames and those of other installed packages; without them, what they hold is their caller's"
        on={frames}
        onChange={(on) => store.set({ framework_frames: on, selected_function: "" })}
      />
    </div>
  );
}

/** Asked for when it is finished: half a regular expression is another one. */
function Pattern(props: { pattern: (typeof PATTERNS)[number]; store: Store<ViewState> }): JSX.Element {
  const { pattern, store } = props;
  const value = useStore(store, (state) => state[pattern.key]);
  const field = useDraft(value, (typed) => store.set({ [pattern.key]: typed.trim() }));
  return (
    <input
      type="search"
      class="pattern"
      data-testid={`pattern-${pattern.key}`}
      aria-label={`${pattern.label}: ${pattern.about}`}
      title={pattern.about}
      placeholder={`${pattern.label}: regex`}
      spellcheck={false}
      {...field}
    />
  );
}
