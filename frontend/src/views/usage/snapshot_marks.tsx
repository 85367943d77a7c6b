import { useMemo, useState } from "preact/hooks";
import { goToNext } from "../../base/input";
import { formatCounted } from "../../base/units";
import { type Axis, type Span, stepAt } from "../../layout/axis";
import { groupMarks, type Mark, snapshotText } from "../../layout/live";
import type { UsageSeries } from "../../layout/usage/usage_series";
import type { Summary } from "../../payload/generated/answers";
import { GUTTER_LEFT } from "../drawing/surface";
import { openRecording } from "../state/tabs";
import { store } from "../state/view_state";
import { Tooltip } from "../widgets/tooltip";

interface Props {
  /** In order of time. */
  snapshots: readonly Summary[];
  /** Position 0 of the axis, in ns since 1970. */
  beganNs: number;
  series: UsageSeries;
  axis: Axis;
  /** Visible ranges of the x axis and of bytes. */
  window: Span;
  bytes: Span;
  /** The plot in pixels, without axes. */
  plot: { width: number; height: number; top: number };
}

/** Closer marks are drawn as one. */
const GAP = 18;

/** Marks on the curve where the job saved a snapshot. A click opens it; of several close together, it zooms in. */
export function SnapshotMarks({ snapshots, beganNs, series, axis, window, bytes, plot }: Props) {
  const [pointed, setPointed] = useState<string | null>(null);
  const marks = useMemo(() => {
    const pixelOf = (ns: number): number =>
      ((ns - beganNs - window[0]) / (window[1] - window[0])) * plot.width;
    return groupMarks(snapshots, pixelOf, plot.width, GAP);
  }, [snapshots, beganNs, window[0], window[1], plot.width]);
  if (marks.length === 0) return null;
  const live = series.curves[0]?.max ?? new Float64Array(0);
  const yOf = ({ snapshots: [first] }: Mark): number => {
    const value = live[stepAt(series.x, (first.time_ns ?? 0) - beganNs)];
    const share = (value - bytes[0]) / (bytes[1] - bytes[0]);
    return plot.top + plot.height * (1 - Math.min(Math.max(Number.isNaN(share) ? 0 : share, 0), 1));
  };
  const open = ({ snapshots: found }: Mark): void => {
    if (found.length === 1) {
      openRecording(found[0]);
      return;
    }
    const times = [found[0], found[found.length - 1]].map(({ time_ns }) => (time_ns ?? 0) - beganNs);
    const around = Math.max(times[1] - times[0], 1e9) / 4;
    const [least, most] = axis.extent;
    store.set({
      zoom: axis.toSaved([Math.max(times[0] - around, least), Math.min(times[1] + around, most)]),
    });
  };
  const shown = marks.find(({ snapshots: [{ id }] }) => id === pointed);
  return (
    <div
      class="snapshot-marks"
      role="group"
      aria-label="Snapshots of the job. Arrow keys move between them, Enter opens one."
      onKeyDown={goToNext}
    >
      {marks.map((mark, i) => {
        const { id } = mark.snapshots[0];
        return (
          <button
            key={id}
            class="snapshot-mark"
            data-testid="snapshot-mark"
            tabindex={i === 0 ? 0 : -1}
            aria-label={`${textsOf(mark).join("; ")}: ${mark.snapshots.length === 1 ? "open it" : "zoom in"}`}
            style={{ left: `${GUTTER_LEFT + mark.x}px`, top: `${yOf(mark)}px` }}
            onClick={() => open(mark)}
            onMouseEnter={() => setPointed(id)}
            onMouseLeave={() => setPointed(null)}
            onFocus={() => setPointed(id)}
            onBlur={() => setPointed(null)}
          >
            <i aria-hidden="true" />
            <span aria-hidden="true">{labelOf(mark)}</span>
          </button>
        );
      })}
      {shown !== undefined && (
        <Tooltip x={GUTTER_LEFT + shown.x} y={yOf(shown) + GAP} width={plot.width + GUTTER_LEFT}>
          {textsOf(shown).map((text) => (
            <span key={text}>{text}</span>
          ))}
          <span class="muted">
            {shown.snapshots.length === 1 ? "Click to open the snapshot" : "Click to zoom in"}
          </span>
        </Tooltip>
      )}
    </div>
  );
}

const MAX_TEXTS = 4;

function textsOf({ snapshots }: Mark): string[] {
  if (snapshots.length === 1) return [`Snapshot at ${snapshotText(snapshots[0])}`];
  const more = snapshots.length - MAX_TEXTS;
  return [
    formatCounted(snapshots.length, "snapshot"),
    ...snapshots.slice(0, MAX_TEXTS).map(snapshotText),
    ...(more > 0 ? [`and ${formatCounted(more, "more", "more")}`] : []),
  ];
}

/** Text beside a mark: the reason or the step. */
function labelOf({ snapshots: [first, ...others] }: Mark): string {
  if (others.length > 0) return `${others.length + 1}`;
  return first.reason ?? (first.step === null ? "" : `step ${first.step}`);
}
