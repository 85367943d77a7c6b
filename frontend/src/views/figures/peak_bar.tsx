import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { cssColor, roleColors } from "../../base/colors";
import { formatBytes, formatShare } from "../../base/units";
import { bytesByRole, liveAt } from "../../layout/usage/live_set";
import type { FirstView } from "../../payload/recording/recording";
import { ROLES } from "../../payload/generated/constants";
import type { AvailableRows } from "../data/available_rows";

/** Bar of the live peak by role, within reserved memory and capacity. */
export function PeakBar(props: { view: FirstView; available: AvailableRows; dark: boolean }): JSX.Element {
  const { view, available, dark } = props;
  const allocator = view.recording.kind === "allocator" || view.recording.kind === "watch";
  const program = view.recording.kind === "program";
  const { capacity_bytes: capacity, peak_bytes: peak, reserved_bytes } = view.recording;
  const reserved = reserved_bytes ?? peak;
  const whole = Math.max(capacity ?? 0, reserved, peak, 1);
  const parts = useMemo(() => {
    const live = liveAt(available.rows, view.peak);
    const byRole = bytesByRole(available.rows, live);
    const unknown = available.rows.roles_follow || (allocator && byRole.size < 2);
    return unknown ? [] : [...byRole];
  }, [available, view]);
  const colors = roleColors(dark);
  const width = (bytes: number): string => `${(100 * bytes) / whole}%`;
  const words = allocator
    ? `Peak ${formatBytes(peak)}` +
      (capacity === null ? "" : `, ${formatShare(peak, capacity)} of ${formatBytes(capacity)} capacity`)
    : `Live peak ${formatBytes(peak)}` +
      (reserved_bytes === null
        ? ""
        : `, ${formatShare(peak, reserved)} of ${formatBytes(reserved)} reserved`) +
      (capacity === null
        ? ""
        : program
          ? `; reserved is ${formatShare(reserved, capacity)} of the limit ${formatBytes(capacity)}` +
            (reserved > capacity ? `, ${formatBytes(reserved - capacity)} too much` : "")
          : `, capacity ${formatBytes(capacity)}`);
  const { capacity_source: source } = view.recording;
  return (
    <div class="peak-bar">
      <div class="peak-bar-track" role="img" aria-label={words}>
        <i class="reserved" style={{ width: width(reserved) }} />
        <div class="peak" style={{ width: width(peak) }}>
          {parts.map(([role, bytes]) => (
            <i
              key={role}
              title={`${ROLES[role]} ${formatBytes(bytes)}, ${formatShare(bytes, peak)} of the peak`}
              style={{ width: `${(100 * bytes) / Math.max(peak, 1)}%`, background: cssColor(colors[role]) }}
            />
          ))}
        </div>
      </div>
      <p title={capacity !== null && source !== "" ? `${formatBytes(capacity)}: ${source}` : undefined}>
        {words}
      </p>
    </div>
  );
}
