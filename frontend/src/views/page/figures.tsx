import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { cssColor, roleColors } from "../../base/colors";
import { formatBytes, formatExact, formatShare } from "../../base/units";
import { bytesByRole, liveAt } from "../../layout/usage/live_set";
import type { Figure, OutOfMemory } from "../../payload/generated/answers";
import { ROLES } from "../../payload/generated/constants";
import type { FirstView } from "../../payload/recording/recording";
import type { AvailableRows } from "../data/use_recording";

/** Bar of the live peak by role, within reserved memory and capacity. */
function PeakBar(props: { view: FirstView; available: AvailableRows; dark: boolean }): JSX.Element {
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

/** Bar of an out-of-memory failure: memory in use, the request on top, and the capacity. */
function OutOfMemoryBar({
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

/** Peak bar and figures, each with a definition as its tooltip. */
export function Figures(props: { view: FirstView; available: AvailableRows; dark: boolean }): JSX.Element {
  const { view, available, dark } = props;
  const { kind, peak_bytes: peak, reserved_bytes: reserved, capacity_bytes: capacity } = view.recording;
  const total =
    kind === "allocator" || kind === "watch" || (kind === "oom" && capacity !== null)
      ? { bytes: capacity, label: "of the capacity" }
      : { bytes: reserved ?? peak, label: reserved === null ? "of the peak" : "of reserved memory" };
  // Unknown and zero answer no question; caveats name what is unknown.
  const shown = view.figures.filter(({ bytes }) => bytes !== null && bytes !== 0);
  return (
    <section class="figures" aria-label="Figures">
      {view.out_of_memory === null ? (
        <PeakBar view={view} available={available} dark={dark} />
      ) : (
        <OutOfMemoryBar view={view} outOfMemory={view.out_of_memory} />
      )}
      <dl class={shown.length > MAX_IN_ONE_LINE ? "two-lines" : ""}>
        {shown.map((figure) => (
          <FigureCell key={figure.key} figure={figure} whole={total} />
        ))}
      </dl>
    </section>
  );
}

/** Figures that fit side by side without cutting their labels. */
const MAX_IN_ONE_LINE = 9;

interface Total {
  bytes: number | null;
  label: string;
}

/** Totals and sums over time, for which a share would mean nothing. */
const WITHOUT_SHARE = new Set(["reserved", "capacity", "allocated", "freed"]);

export function FigureCell({ figure, whole: total }: { figure: Figure; whole: Total }): JSX.Element {
  const { key, label, bytes, text } = figure;
  const share =
    bytes !== null && total.bytes !== null && !WITHOUT_SHARE.has(key)
      ? ` ${formatShare(bytes, total.bytes)} ${total.label}.`
      : "";
  return (
    <div class="figure" data-testid={`figure-${key}`} tabindex={0} aria-describedby={`about-${key}`}>
      <dt>{label}</dt>
      <dd title={bytes === null ? "" : formatExact(bytes)}>
        {bytes === null ? "unknown" : formatBytes(bytes)}
      </dd>
      <dd class="about" id={`about-${key}`}>
        {text}
        {bytes !== null && <small>{` ${formatExact(bytes)}.${share}`}</small>}
      </dd>
    </div>
  );
}
