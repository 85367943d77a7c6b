import type { JSX } from "preact";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import { formatBytes, parseBytes } from "../../base/units";
import { CHIPS, MEMORY_SPACES } from "../../payload/generated/constants";
import type { Summary } from "../../payload/generated/answers";
import { useDraft } from "../browser/use_draft";
import type { ViewState } from "../state/view_state";

/** What the server calls the source of a capacity that a user typed. */
const ASSUMED = "assumed";

const BY_CHIP = new Map(CHIPS);

/** Input for the capacity of memories whose profile records none. */
export function AssumedCapacity(props: {
  recordings: readonly Summary[];
  store: Store<ViewState>;
}): JSX.Element | null {
  const { recordings, store } = props;
  const capacity = useStore(store, (state) => state.capacity);
  const field = useDraft(capacity === null ? "" : `${capacity / 2 ** 30} GiB`, (typed) => {
    const bytes = Math.round(BY_CHIP.get(typed.trim().toLowerCase()) ?? parseBytes(typed) ?? 0);
    store.set({ capacity: bytes > 0 && bytes <= Number.MAX_SAFE_INTEGER / 8 ? bytes : null });
  });
  const isUnknown = recordings.some(
    (recording) =>
      isMainMemory(recording) && (recording.capacity_bytes === null || recording.capacity_source === ASSUMED),
  );
  if (!isUnknown) return null;
  return (
    <label
      class="assumed-capacity muted"
      title="The profile does not record the capacity. Figures and charts use the size or the TPU that you type; the URL keeps it."
    >
      Assumed capacity{" "}
      <input
        type="text"
        size={16}
        placeholder="v5e, or 15.75 GiB"
        list="chips"
        data-testid="assumed-capacity"
        {...field}
      />
      <datalist id="chips">
        {CHIPS.map(([name, bytes]) => (
          <option key={name} value={name} label={formatBytes(bytes)} />
        ))}
      </datalist>
    </label>
  );
}

/** Memories on the chip and of the host have sizes of their own. */
function isMainMemory({ kind, memory }: Summary): boolean {
  return kind !== "program" || memory === MEMORY_SPACES[0];
}
