import type { JSX } from "preact";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import { Choice } from "./choice";
import type { ViewState } from "../state/view_state";

const AXES = [
  {
    value: "events",
    label: "Events",
    about: "Equally spaced events; bursts are spread out",
  },
  { value: "time", label: "Time", about: "Time since the profile started" },
] as const;

const RANGES = [
  { value: "peak", label: "To the peak", about: "From zero to the peak" },
  { value: "capacity", label: "To capacity", about: "From zero to the capacity" },
  {
    value: "fit",
    label: "Fit",
    about: "Range of the visible part; does not start at zero",
  },
] as const;

interface Props {
  /** Choices that the recording supports: timestamps for time, a known capacity. */
  timed: boolean;
  capacity: boolean;
  store: Store<ViewState>;
}

/** Choices for the axes of an allocator's usage chart. */
export function AxisChoices({ timed, capacity, store }: Props): JSX.Element {
  const range = useStore(store, (state) => state.usage_range);
  return (
    <>
      {timed && <AxisChoice store={store} />}
      <Choice
        label="Y axis"
        testid="range-choice"
        options={RANGES.filter(({ value }) => capacity || value !== "capacity")}
        value={range}
        onPick={(picked) => store.set({ usage_range: picked, usage_zoom: null })}
      />
    </>
  );
}

/** Choice of events or time for the x axis of all charts. */
export function AxisChoice({ store }: Pick<Props, "store">): JSX.Element {
  const axis = useStore(store, (state) => state.axis);
  return (
    <Choice
      label="X axis"
      testid="axis-choice"
      options={AXES}
      value={axis}
      onPick={(picked) => store.set({ axis: picked })}
    />
  );
}
