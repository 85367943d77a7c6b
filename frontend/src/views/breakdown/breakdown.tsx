import type { JSX } from "preact";
import { useContext, useMemo } from "preact/hooks";
import { useStore } from "../../base/store";
import { formatBytes, formatCount, formatShare } from "../../base/units";
import { mapByAddress } from "../../layout/stacking/stacking";
import { readFilter } from "../../layout/url_values";
import { bytesByRole, hasRoles, liveAt, liveBytes } from "../../layout/usage/live_set";
import type { FirstView, Program } from "../../payload/recording/recording";
import type { Rows } from "../../payload/recording/rows";
import { BufferTable } from "../buffer_table/buffer_table";
import { useTerms } from "../data/terms";
import type { AvailableRows } from "../data/use_recording";
import { RoleFilter, RowFilterContext } from "../page/row_filter";
import { usePosition, type ViewProps } from "../state/view_state";
import { TreeCharts, useTree } from "../trees/tree_charts";
import { Choice } from "../widgets/choice";
import { AddressMap } from "./address_map";
import { BufferCharts } from "./buffer_charts";

interface Props extends ViewProps {
  rows: Rows;
  live: Uint32Array;
  /** Live bytes without a row. */
  unexplained: number;
  peak: number;
}

/** Live bytes at the inspected position by role; the legend of all colors on the page, whose rows filter. */
function Categories({ rows, live, unexplained, peak, store, dark }: Props): JSX.Element {
  // All roles of the recording, in the order at the peak, so that nothing moves while stepping through positions.
  const roles = useMemo(() => {
    const ever = bytesByRole(rows, rows.charge.keys());
    return [...new Set([...bytesByRole(rows, liveAt(rows, peak)).keys(), ...ever.keys()])];
  }, [rows, peak]);
  const bytes = bytesByRole(rows, live);
  const total = liveBytes(rows, live) + Math.max(unexplained, 0);
  const terms = useTerms();
  return (
    <ul class="categories" aria-label="Live bytes by role">
      {roles.map((role) => (
        <li key={role} class={bytes.has(role) ? "" : "muted"}>
          <RoleFilter role={role} dark={dark} store={store}>
            {" "}
            <b>{formatBytes(bytes.get(role) ?? 0)}</b>{" "}
            <span class="muted">{formatShare(bytes.get(role) ?? 0, total)}</span>
          </RoleFilter>
        </li>
      ))}
      {unexplained > 0 && (
        <li>
          {terms.unexplained} <b>{formatBytes(unexplained)}</b>{" "}
          <span class="muted">{formatShare(unexplained, total)}</span>
        </li>
      )}
    </ul>
  );
}

const CHARTS = [
  { value: "bars", label: "Bars", about: "Buffers side by side: by order, by size, by padding" },
  {
    value: "flame",
    label: "Flame graph",
    about: "Hierarchy; width shows the weight, largest first (left-heavy)",
  },
  {
    value: "sandwich",
    label: "Sandwich",
    about: "Callers of one function above it, callees below it",
  },
  { value: "treemap", label: "Treemap", about: "Hierarchy; area shows the weight" },
  { value: "tree", label: "Tree table", about: "Hierarchy with numbers" },
] as const;
const ADDRESS_MAP = {
  value: "address",
  label: "Address map",
  about: "Segments by address, with their chunks and holes. The keys [ and ] step through events",
} as const;

interface BreakdownProps extends ViewProps {
  view: FirstView;
  available: AvailableRows;
  program: Program | null;
}

/** Live buffers at the inspected position. Away from the peak this needs all rows. */
export function Breakdown({ view, available, program, store, dark }: BreakdownProps): JSX.Element {
  const position = usePosition(store, view);
  const wanted = useStore(store, (state) => state.chart);
  const placed = isAllocator(view) && (available.regions?.length ?? 0) > 0;
  const chart = wanted === "address" && !placed ? "bars" : wanted;
  const { rows, regions, complete } = available;
  const map = useMemo(
    () =>
      chart === "address" && regions !== null ? mapByAddress(view.recording.kind, { rows, regions }) : null,
    [chart, rows, regions, view],
  );
  const terms = useTerms();
  const compiled = view.recording.axis === "PROGRAM_ORDER";
  const asTree = chart !== "bars" && chart !== "address";
  const { tree } = useTree(store, complete ? rows : null, compiled, asTree && complete);
  const allocator = isAllocator(view);
  const moment = view.recording.axis === "INSTANT";
  const {
    live,
    filtered,
    unexplained,
    unexplainedShown: rest,
  } = useLiveRows(view, available, program, position);
  const roles = useMemo(() => hasRoles(rows), [rows]);
  const atPeak = position === view.peak ? view.recording.peak_bytes : null;
  const bytes = complete ? liveBytes(rows, live) + unexplained : atPeak;
  // With a row filter its total comes first, which the charts below add up to.
  const part = filtered === live ? "" : `${formatBytes(liveBytes(rows, filtered))} of `;
  const count = `${filtered === live ? "" : `${formatCount(filtered.length)} of `}${formatCount(live.length)}`;
  // A legend that filters keeps the figures of the categories that it leaves out.
  const byRole = useStore(store, (state) => readFilter(state.row_filter)?.kind === "roles");
  const fileName = `${view.recording.title}-${view.recording.memory}-at-${position}`;
  return (
    <section aria-label="Live at the inspected position">
      <header class="section-head">
        <h2 data-testid="live-heading">
          {part}
          {bytes === null ? "…" : formatBytes(bytes)} {terms.live}
          {complete &&
            (rest === 0
              ? ` in ${count} ${terms.items}`
              : `: ${formatBytes(liveBytes(rows, live))} in ${count} ${terms.items}, ` +
                `${formatBytes(rest)} ${terms.unexplained}`)}
          {position === view.peak && !moment ? " at the peak" : ""}
        </h2>
        {!moment && (
          <span class="muted">
            {terms.position} {formatCount(position)}
            {program !== null && position < program.length && `, ${program.name.at(position)}`}
          </span>
        )}
        <span class="spacer" />
        <Choice
          label="Chart"
          testid="chart"
          options={placed ? [...CHARTS, ADDRESS_MAP] : CHARTS}
          value={chart}
          onPick={(picked) => store.set({ chart: picked })}
        />
      </header>
      {rows.roles_follow && <p class="categories muted">Finding roles…</p>}
      {roles && (
        <Categories
          {...{ rows, store, dark }}
          live={byRole ? live : filtered}
          unexplained={byRole ? unexplained : rest}
          peak={view.peak}
        />
      )}
      {chart === "bars" ? (
        <BufferCharts available={available} live={filtered} store={store} dark={dark} />
      ) : chart === "address" && map !== null ? (
        <AddressMap
          {...{ ...map, live: filtered, position, fileName, store, dark }}
          places={available.places}
          outOfMemory={null}
        />
      ) : (
        <TreeCharts
          {...{ program, compiled, fileName, store, dark }}
          rows={complete ? rows : null}
          live={filtered}
          unexplained={Math.max(rest, 0)}
        />
      )}
      <BufferTable
        {...{ available, tree, allocator, moment, position, store, dark }}
        live={filtered}
        unexplained={rest}
        times={program?.time_ns ?? null}
        length={view.length}
        fileName={`${fileName}.csv`}
      />
    </section>
  );
}

const isAllocator = (view: FirstView): boolean => view.recording.axis === "TIME";

interface LiveRows {
  live: Uint32Array;
  /** Live bytes without a row. */
  unexplained: number;
  /** Those that pass the row filter: all without a filter, none with one. */
  filtered: Uint32Array;
  unexplainedShown: number;
}

function useLiveRows(
  view: FirstView,
  available: AvailableRows,
  program: Program | null,
  position: number,
): LiveRows {
  const { rows, complete } = available;
  const filter = useContext(RowFilterContext);
  const known = complete || position === view.peak;
  const live = useMemo(() => (known ? liveAt(rows, position) : new Uint32Array(0)), [rows, position, known]);
  const mask = complete ? filter.rows : null;
  const filtered = useMemo(
    () => (mask === null ? live : live.filter((row) => mask[row] === 1)),
    [live, mask],
  );
  const unexplained = program?.unexplained?.[position] ?? 0;
  return { live, filtered, unexplained, unexplainedShown: mask === null ? unexplained : 0 };
}
