import type { JSX } from "preact";
import { formatBytes, formatExact, formatShare } from "../../base/units";
import type { Figure } from "../../payload/generated/answers";
import type { FirstView } from "../../payload/recording/recording";
import { PeakBar } from "./peak_bar";
import { OutOfMemoryBar } from "./out_of_memory_bar";
import type { AvailableRows } from "../data/available_rows";

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
