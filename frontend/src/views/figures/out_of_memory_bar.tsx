import type { JSX } from "preact";
import { formatBytes, formatShare } from "../../base/units";
import type { FirstView } from "../../payload/recording/recording";
import type { OutOfMemory } from "../../payload/generated/answers";

/** Bar of an out-of-memory failure: memory in use, the request on top, and the capacity. */
export function OutOfMemoryBar({
  view,
  outOfMemory,
}: {
  view: FirstView;
  outOfMemory: OutOfMemory;
}): JSX.Element | null {
  const { peak_bytes: used, capacity_bytes: capacity } = view.recording;
  // A compile-time failure gives the program's total, which includes what is in use.
  const requested = outOfMemory.in_use_bytes === null ? 0 : (outOfMemory.asked_bytes ?? 0);
  const end = Math.max(capacity ?? 0, used + requested);
  if (end === 0) return null;
  const share = (bytes: number): string => `${(100 * bytes) / end}%`;
  const description =
    `${formatBytes(used)} ${outOfMemory.used_is}` +
    (requested > 0 ? `, ${formatBytes(requested)} requested` : "") +
    (capacity === null
      ? ""
      : `, ${formatShare(used + requested, capacity)} of ${formatBytes(capacity)} capacity`);
  return (
    <div class="peak-bar out-of-memory-bar" data-testid="out-of-memory-bar">
      <div class="peak-bar-track" role="img" aria-label={description}>
        <i class="used" style={{ width: share(used) }} />
        <i class="asked" style={{ left: share(used), width: share(requested) }} />
        {capacity !== null && <i class="end" style={{ left: share(capacity) }} title="capacity" />}
      </div>
      <p>{description}</p>
    </div>
  );
}
