import type { JSX } from "preact";
import { formatBytes, formatShare } from "../../base/units";
import type { FirstView } from "../../payload/recording/recording";
import type { OutOfMemory } from "../../payload/recording/out_of_memory";

/** What was in use, what was asked on top of it, and where the memory ends, as one bar. */
export function OutOfMemoryBar({ view, outOfMemory }: { view: FirstView; outOfMemory: OutOfMemory }): JSX.Element | null {
  const { peak_bytes: used, capacity_bytes: capacity } = view.recording;
  // What a program needs in all is not beside what is in use.
  const asked = outOfMemory.in_use_bytes === null ? 0 : (outOfMemory.asked_bytes ?? 0);
  const whole = Math.max(capacity ?? 0, used + asked);
  if (whole === 0) return null;
  const share = (bytes: number): string => `${(100 * bytes) / whole}%`;
  const words =
    `${formatBytes(used)} ${outOfMemory.used_is}` +
    (asked > 0 ? `, ${formatBytes(asked)} asked for` : "") +
    (capacity === null
      ? ""
      : `, ${formatShare(used + asked, capacity)} of the capacity of ${formatBytes(capacity)}`);
  return (
    <div class="peak-bar out-of-memory-bar" data-testid="out-of-memory-bar">
      <div class="peak-bar-track" role="img" aria-label={words}>
        <i class="used" style={{ width: share(used) }} />
        <i class="asked" style={{ left: share(used), width: share(asked) }} />
        {capacity !== null && <i class="end" style={{ left: share(capacity) }} title="capacity" />}
      </div>
      <p>{words}</p>
    </div>
  );
}
