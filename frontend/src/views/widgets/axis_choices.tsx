import type { JSX } from "preact";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import { Choice } from "./choice";
import type { ViewState } from "../state/view_state";

const AXES = [
  {
    value: "events",
    label: "Events",
    about: "Along x every event is as wide as the next: bursts are spread out",
  },
  { value: "time", label: "Time", about: "Along x is time since the profile began" },
] as const;

const RANGES = [
  { value: "peak", label: "To the peak", about: "Along y from zero to the peak" },
  { value: "capacity", label: "To capacity", about: "Along y from zero to all the memory there is" },
  {
    value: "fit",
    label: "Fit",
    about: "Along y only what the curve reaches in sight; it does not start at zero",
  },
] as const;

interface Props {
  /** Whether events have times, and whether the capacity is known. */
  timed: boolean;
  capacity: boolean;
  store: Store<ViewState>;
}

/** What the axes of an allocator's curve run over. */
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

/** Events or time along x, of all charts. */
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
