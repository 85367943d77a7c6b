import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Store } from "../../base/store";
import { formatBytes, formatCount } from "../../base/units";
import { liveAt, liveBytes } from "../../layout/live_set";
import type { FirstView, Program } from "../../payload/recording";
import type { ViewState } from "../state";
import { useWords } from "../words";
import { BufferCharts } from "./buffer_charts";
import { BufferTable } from "./buffer_table";
import { Categories } from "./categories";
import type { Shown } from "./shown";
import { usePosition } from "./use_position";

interface BreakdownProps {
  view: FirstView;
  shown: Shown;
  program: Program | null;
  store: Store<ViewState>;
  dark: boolean;
}

/** What is live at the inspected position. Away from the peak it takes all rows to know. */
export function Breakdown({ view, shown, program, store, dark }: BreakdownProps): JSX.Element {
  const position = usePosition(store, view);
  const { rows, complete } = shown;
  const words = useWords();
  const allocator = view.recording.kind === "allocator";
  const unexplained = program?.unexplained?.[position] ?? 0;
  const known = complete || position === view.peak;
  const live = useMemo(() => (known ? liveAt(rows, position) : new Uint32Array(0)), [rows, position, known]);
  const atPeak = position === view.peak ? view.recording.peak_bytes : null;
  const bytes = complete ? liveBytes(rows, live) + unexplained : atPeak;
  return (
    <section aria-label="Live at the inspected position">
      <header class="section-head">
        <h2>
          {bytes === null ? "…" : formatBytes(bytes)} {words.live}
          {complete && ` in ${formatCount(live.length)} ${words.items}`}
          {position === view.peak ? " at the peak" : ""}
        </h2>
        <span class="muted">
          {words.position} {position}
          {program !== null && position < program.length && `, ${program.name.at(position)}`}
        </span>
      </header>
      {!allocator && <Categories rows={rows} live={live} dark={dark} />}
      <BufferCharts shown={shown} live={live} store={store} dark={dark} />
      <BufferTable
        shown={shown}
        live={live}
        unexplained={unexplained}
        allocator={allocator}
        times={program?.time_ns ?? null}
        position={position}
        length={view.length}
        fileName={`${view.recording.title}-${view.recording.memory}-at-${position}.csv`}
        store={store}
        dark={dark}
      />
    </section>
  );
}
