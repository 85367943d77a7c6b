import { useState } from "preact/hooks";
import { formatBytes } from "../../base/units";
import type { Summary } from "../../payload/generated/answers";
import { ACCELERATORS, MEMORY_SPACES } from "../../payload/generated/constants";
import { useDraft } from "../browser/use_draft";
import { notACapacity, readCapacity } from "../state/capacity";
import { store, useViewState } from "../state/view_state";

/** What the server calls the source of a capacity that a user typed. */
const ASSUMED = "assumed";

/** Input for the capacity of memories whose profile records none. */
export function AssumedCapacity(props: { recordings: readonly Summary[] }) {
  const { recordings } = props;
  const capacity = useViewState((state) => state.capacity);
  const [rejected, setRejected] = useState("");
  const text = capacity === null ? "" : `${capacity / 2 ** 30} GiB`;
  const field = useDraft(rejected === "" ? text : rejected, (typed) => {
    const bytes = readCapacity(typed);
    setRejected(bytes === undefined ? typed : "");
    if (bytes !== undefined) store.set({ capacity: bytes });
  });
  const isUnknown = recordings.some(
    (recording) =>
      isMainMemory(recording) && (recording.capacity_bytes === null || recording.capacity_source === ASSUMED),
  );
  if (!isUnknown) return null;
  return (
    <label
      class="assumed-capacity muted"
      title={
        "The profile does not record the limit. Figures and charts use the size or the accelerator that you " +
        "type; the URL keeps it."
      }
    >
      Assumed limit{" "}
      <input
        type="text"
        size={15}
        aria-invalid={rejected !== ""}
        aria-describedby="capacity-rejected"
        placeholder="v5e, or 15.75 GiB"
        list="chips"
        data-testid="assumed-capacity"
        {...field}
      />
      <span id="capacity-rejected" class="wasteful" role="alert" data-testid="capacity-rejected">
        {rejected !== "" && notACapacity(rejected)}
      </span>
      <datalist id="chips">
        {ACCELERATORS.map(({ name, bytes }) => (
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
