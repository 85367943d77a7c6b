import type { JSX } from "preact";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import { parseBytes } from "../../base/units";
import type { Summary } from "../../payload/generated/answers";
import { useDraft } from "../browser/use_draft";
import type { ViewState } from "../state/view_state";

/** What the server calls the source of a capacity that a user typed. */
const ASSUMED = "assumed";

/** Input for the capacity of memories whose profile records none. */
export function AssumedCapacity(props: {
  recordings: readonly Pick<Summary, "capacity_bytes" | "capacity_source">[];
  store: Store<ViewState>;
}): JSX.Element | null {
  const { recordings, store } = props;
  const capacity = useStore(store, (state) => state.capacity);
  const field = useDraft(capacity === null ? "" : `${capacity / 2 ** 30} GiB`, (typed) => {
    const bytes = Math.round(parseBytes(typed) ?? 0);
    store.set({ capacity: bytes > 0 && bytes <= Number.MAX_SAFE_INTEGER / 8 ? bytes : null });
  });
  const isUnknown = recordings.some(
    ({ capacity_bytes: bytes, capacity_source: source }) => bytes === null || source === ASSUMED,
  );
  if (!isUnknown) return null;
  return (
    <label
      class="assumed-capacity muted"
      title="The profile does not record the capacity. Figures and charts use the one that you type; the URL keeps it."
    >
      Assumed capacity{" "}
      <input type="text" size={12} placeholder="15.75 GiB" data-testid="assumed-capacity" {...field} />
    </label>
  );
}
