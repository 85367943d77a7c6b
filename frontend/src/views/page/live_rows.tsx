import { useContext, useMemo } from "preact/hooks";
import { formatBytes, formatCount, formatCounted } from "../../base/units";
import { formatTime } from "../../layout/axis";
import { liveBetween, liveBytes, mostBetween } from "../../layout/usage/live_set";
import type { FirstView, Program } from "../../payload/recording/recording";
import { useTerms } from "../data/terms";
import type { AvailableRows } from "../data/use_recording";
import type { Window } from "../state/fields";
import { store, usePosition, useViewState } from "../state/view_state";
import { RowFilterContext } from "./row_filter";

/** What is live at the inspected position, or in the selected range of the axis. */
interface LiveRows {
  /** The same position twice without a range. */
  first: number;
  last: number;
  isRange: boolean;
  live: Uint32Array;
  /** Live bytes without a row. */
  unexplained: number;
  /** Those that pass the row filter: all without a filter, none with one. */
  filtered: Uint32Array;
  unexplainedShown: number;
}

/** What the charts and the table of live rows are given. */
export interface LiveProps {
  view: FirstView;
  available: AvailableRows;
  program: Program | null;
}

/** Return the first and last position of a part of the axis, whose end is excluded. */
function positionsIn([from, to]: Window, length: number): [number, number] {
  const first = Math.min(Math.max(Math.floor(from), 0), Math.max(length - 1, 0));
  return [first, Math.min(Math.max(Math.ceil(to) - 1, first), Math.max(length - 1, first))];
}

/** Return the rows that charts and tables are about. Away from the peak, none are known until all have loaded. */
export function useLiveRows({ view, available, program }: LiveProps): LiveRows {
  const { rows, complete } = available;
  const position = usePosition(view);
  const range = useViewState((state) => state.range);
  const [first, last] = range === null ? [position, position] : positionsIn(range, view.length);
  const filter = useContext(RowFilterContext);
  const known = complete || (range === null && position === view.peak);
  const live = useMemo(
    () => (known ? liveBetween(rows, first, last) : new Uint32Array(0)),
    [rows, first, last, known],
  );
  const mask = complete ? filter.rows : null;
  const filtered = useMemo(
    () => (mask === null ? live : live.filter((row) => mask[row] === 1)),
    [live, mask],
  );
  const unexplained = useMemo(
    () => program?.unexplained?.subarray(first, last + 1).reduce((most, bytes) => Math.max(most, bytes)) ?? 0,
    [program, first, last],
  );
  const unexplainedShown = mask === null ? unexplained : 0;
  return { first, last, isRange: range !== null, live, filtered, unexplained, unexplainedShown };
}

interface HeadingProps extends LiveProps {
  of: LiveRows;
  testid: string;
}

/** Heading: what is live, and when; and a button that selects the visible part of the axis, or clears the range. */
export function LiveHeading({ of, testid, ...shown }: HeadingProps) {
  const { view, program } = shown;
  const { first, last, isRange } = of;
  const terms = useTerms();
  const zoom = useViewState((state) => state.zoom);
  const range = useViewState((state) => state.range);
  const hasClock = useViewState((state) => state.axis) === "time";
  const times = hasClock ? (program?.time_ns ?? null) : null;
  const moment = view.recording.axis === "INSTANT";
  const at = (position: number): string =>
    times === null ? formatCount(position) : formatTime(times[position]);
  return (
    <>
      <h2 data-testid={testid}>
        <LiveText {...shown} of={of} between={`between ${at(first)} and ${at(last)}`} />
        {!isRange && !moment && first === view.peak && " at the peak"}
      </h2>
      {isRange && (
        <button data-testid="clear-range" onClick={() => store.set({ range: null })}>
          Clear the range
        </button>
      )}
      {!isRange && !moment && (
        <span class="muted">
          {terms.position} {formatCount(first)}
          {program !== null && first < program.length && `, ${program.name.at(first)}`}
        </span>
      )}
      {!moment && zoom !== null && zoom.join() !== range?.join() && (
        <button
          data-testid="select-range"
          title={`List what is ${terms.live} anywhere in the visible part of the axis`}
          onClick={() => store.set({ range: zoom })}
        >
          Only the visible part
        </button>
      )}
    </>
  );
}

type TextProps = Omit<HeadingProps, "testid"> & {
  /** The selected range. */
  between: string;
};

/** Bytes and number of what is live; with a row filter its part comes first, which the charts below add up to. */
function LiveText({ view, available, of, between }: TextProps) {
  const { rows, complete } = available;
  const { first, last, isRange, live, filtered, unexplained, unexplainedShown: rest } = of;
  const terms = useTerms();
  const rowBytes = useMemo(() => liveBytes(rows, live), [rows, live]);
  const part = filtered === live ? "" : `${formatBytes(liveBytes(rows, filtered))} of `;
  const items = formatCounted(live.length, terms.item, terms.items);
  const count = filtered === live ? items : `${formatCount(filtered.length)} of ${items}`;
  if (!complete)
    return (
      <>
        {first === view.peak && !isRange ? formatBytes(view.recording.peak_bytes) : "…"} {terms.live}
      </>
    );
  if (isRange)
    return (
      <>
        {count} {terms.live} {between}: {part}
        {formatBytes(rowBytes)} in all, at most {formatBytes(mostBetween(rows, filtered, first, last))} at
        once
      </>
    );
  return (
    <>
      {part}
      {formatBytes(rowBytes + unexplained)} {terms.live}
      {rest === 0
        ? ` in ${count}`
        : `: ${formatBytes(rowBytes)} in ${count}, ${formatBytes(rest)} ${terms.unexplained}`}
    </>
  );
}
