import { useContext, useMemo, useState } from "preact/hooks";
import { cssColor, roleColors } from "../../base/colors";
import { formatBytes, formatExact, formatShare, parseBytes } from "../../base/units";
import { bytesByRole, liveAt } from "../../layout/usage/live_set";
import type { Figure, OutOfMemory, Summary } from "../../payload/generated/answers";
import { ACCELERATORS, MEMORY_SPACES } from "../../payload/generated/constants";
import type { FirstView } from "../../payload/recording/recording";
import { useDraft } from "../browser/hooks";
import { PrintingContext } from "../browser/printing";
import type { AvailableRows } from "../data/use_recording";
import { useDark } from "../state/theme";
import { store, useViewState } from "../state/view_state";
import { RoleFilter } from "./row_filter";

const BYTES_BY_NAME = new Map(
  ACCELERATORS.flatMap(({ name, bytes, aliases }) =>
    [name, ...aliases].map((each) => [each, bytes] as const),
  ),
);
/** What the server accepts. */
const MAX_BYTES = 2 ** 50;

/** Return the bytes of a typed size or accelerator, null for no text; undefined where it is neither. */
export function readCapacity(typed: string): number | null | undefined {
  const name = typed.trim().toLowerCase();
  if (name === "") return null;
  const known = BYTES_BY_NAME.get(name.replace(/^(?:nvidia|tpu|google|cloud)[\s-]+/, ""));
  const bytes = Math.round(known ?? parseBytes(name) ?? 0);
  return bytes > 0 && bytes <= MAX_BYTES ? bytes : undefined;
}

/** Return the message for a text that is no capacity. */
export function notACapacity(typed: string): string {
  const names = ACCELERATORS.map(({ name }) => name).join(", ");
  return `${typed.trim()} is no size and no accelerator that is known: type 15.75 GiB, or one of ${names}.`;
}

/** What the server calls the source of a capacity that a user typed. */
const ASSUMED = "assumed";

/** Input for the capacity of memories whose profile records none. */
export function AssumedCapacity({ recordings }: { recordings: readonly Summary[] }) {
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

/** Roles with less of the peak are in the panel only. */
const MIN_SHARE = 0.005;

interface PeakProps {
  view: FirstView;
  available: AvailableRows;
}

/** Bar of the peak by role in proportion of the limit, and its legend, whose entries filter. */
function PeakBar({ view, available }: PeakProps) {
  const { capacity_bytes: capacity, peak_bytes: peak, reserved_bytes } = view.recording;
  const whole = Math.max(capacity ?? 0, reserved_bytes ?? 0, peak, 1);
  const roles = useMemo(
    () =>
      [...bytesByRole(available.rows, liveAt(available.rows, view.peak))].filter(([, bytes]) => bytes > 0),
    [available, view],
  );
  const follow = available.rows.roles_follow;
  // Also once they have come, so that nothing moves.
  const space = view.rows.roles_follow ? "categories follow" : "categories";
  const known = !follow && roles.some(([role]) => role !== 0);
  const colors = roleColors(useDark());
  const width = (bytes: number): string => `${(100 * bytes) / whole}%`;
  const words =
    `Peak ${formatBytes(peak)}` +
    (capacity === null ? "" : `, ${formatShare(peak, capacity)} of the limit of ${formatBytes(capacity)}`);
  return (
    <div class="peak-bar">
      <div class="peak-bar-track" role="img" aria-label={words} title={words}>
        <i class="reserved" style={{ width: width(reserved_bytes ?? peak) }} />
        <div class="peak" style={{ width: width(peak) }}>
          {known &&
            roles.map(([role, bytes]) => (
              <i
                key={role}
                style={{ width: `${(100 * bytes) / peak}%`, background: cssColor(colors[role]) }}
              />
            ))}
        </div>
        {capacity !== null && capacity < whole && <i class="end" style={{ left: width(capacity) }} />}
      </div>
      {(known || follow) && (
        <ul class={space} aria-label="Live bytes at the peak by role">
          {roles
            .filter(([, bytes]) => known && bytes >= MIN_SHARE * peak)
            .map(([role, bytes]) => (
              <li key={role}>
                <RoleFilter role={role}>
                  {" "}
                  <b>{formatBytes(bytes)}</b>
                </RoleFilter>
              </li>
            ))}
        </ul>
      )}
    </div>
  );
}

/** Bar of an out-of-memory failure: memory in use, the request on top, and the capacity. */
function OutOfMemoryBar({ view, outOfMemory }: { view: FirstView; outOfMemory: OutOfMemory }) {
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

/** Figures beside the bar; the others are under "Details". */
const MAIN_FIGURES = ["live_peak", "reserved", "capacity"];

/** Peak bar with its legend, three figures, and the other figures under "Details", each with a definition. */
export function Figures({ view, available }: PeakProps) {
  const printing = useContext(PrintingContext);
  const { kind, peak_bytes: peak, reserved_bytes: reserved, capacity_bytes: capacity } = view.recording;
  const total =
    kind === "allocator" || kind === "watch" || (kind === "oom" && capacity !== null)
      ? { bytes: capacity, label: "of the capacity" }
      : { bytes: reserved ?? peak, label: reserved === null ? "of the peak" : "of reserved memory" };
  // Unknown and zero answer no question; caveats name what is unknown.
  const shown = view.figures.filter(({ bytes }) => bytes !== null && bytes !== 0);
  const [main, others] = [true, false].map((isMain) =>
    shown.filter(({ key }) => MAIN_FIGURES.includes(key) === isMain),
  );
  return (
    <section class="figures" aria-label="Figures">
      {view.out_of_memory === null ? (
        <PeakBar {...{ view, available }} />
      ) : (
        <OutOfMemoryBar view={view} outOfMemory={view.out_of_memory} />
      )}
      <FigureList figures={main} whole={total} />
      <AssumedCapacity recordings={[view.recording]} />
      {/* In a popup so that nothing moves; printed, it is open. */}
      {others.length > 0 && (
        <details class="other-figures" data-testid="other-figures" open={printing}>
          <summary>Details</summary>
          <FigureList figures={others} whole={total} />
        </details>
      )}
    </section>
  );
}

interface ListProps {
  figures: readonly Figure[];
  /** Of which figures have a share. */
  whole: { bytes: number | null; label: string };
}

export function FigureList({ figures, whole }: ListProps) {
  return (
    <dl>
      {figures.map((figure) => (
        <FigureCell key={figure.key} figure={figure} whole={whole} />
      ))}
    </dl>
  );
}

/** Totals and sums over time, for which a share would mean nothing. */
const WITHOUT_SHARE = new Set(["reserved", "capacity", "allocated", "freed"]);

function FigureCell({ figure, whole: total }: { figure: Figure; whole: ListProps["whole"] }) {
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
