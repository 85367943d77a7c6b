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
    about: "One box per function name, whatever the file",
  },
  {
    value: "filefunction",
    label: "Function in file",
    about: "One box per function and file",
  },
  { value: "file", label: "File", about: "One box per file" },
  { value: "line", label: "Line", about: "One box per line" },
] as const;

const DEVICES = [
  { value: "one", label: "This device", about: "Memory of the device selected above" },
  { value: "all", label: "All devices", about: "All devices and executables of the file together" },
] as const;

const PATTERNS = [
  {
    key: "focus",
    label: "Focus",
    about: "Keep stacks with a function or file that matches this regular expression",
  },
  { key: "ignore", label: "Ignore", about: "Omit stacks with a function or file that matches" },
  {
    key: "hide",
    label: "Hide",
    about: "Remove matching functions from the stacks, and keep their bytes",
  },
] as const;

interface Props {
  devices: number;
  store: Store<ViewState>;
  /** True if the graph cannot be filtered by regular expressions, as in a report. */
  fixed: boolean;
}

/** Controls of the call graph, named after pprof's options. */
export function Toolbar({ devices, store, fixed }: Props): JSX.Element {
  const calls = useStore(store, (state) => state.granularity);
  const frames = useStore(store, (state) => state.framework_frames);
  const whole = useStore(store, (state) => state.all_devices);
  return (
    <div class="toolbar">
      <Choice
        label="Granularity"
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
        label="Framework frames"
        title="Frames of JAX and other installed packages; if hidden, their bytes count for their callers"
        on={frames}
        onChange={(on) => store.set({ framework_frames: on, selected_function: "" })}
      />
    </div>
  );
}

/** Text field that takes effect on Enter or blur: half a regular expression would be a different one. */
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
