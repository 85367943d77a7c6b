import { useMemo } from "preact/hooks";
import { formatBytes, formatCount, formatSeconds, formatShare } from "../../base/units";
import { type Axis, formatTime, stepAt } from "../../layout/axis";
import { bytesByRole, liveAt, liveBytes } from "../../layout/usage/live_set";
import { usageSeries } from "../../layout/usage/usage_series";
import type { Api } from "../../payload/api";
import { rowName } from "../../payload/recording/rows";
import type { TimeTables } from "../../payload/recording/times";
import { capitalize, useTerms } from "../data/terms";
import { RowFacts, useDetails } from "../page/details";
import type { LiveProps } from "../page/live_rows";
import { RoleFilter } from "../page/row_filter";
import { store, usePosition, useViewState } from "../state/view_state";
import { curveLabels, useCurves } from "../usage/curves";
import { TraceViewerLink } from "../widgets/links";

interface Props extends LiveProps {
  api: Api;
  axis: Axis;
  /** Times of a program's instructions; null where they are not known. */
  times?: TimeTables | null;
}

/** The panel at the right: the selected row, else the row or position under the pointer, else the inspected one. */
export function Panel(props: Props) {
  const { view, available, program } = props;
  const terms = useTerms();
  const hovered = available.indexOf(useViewState((state) => state.hovered ?? state.search_match));
  const pointed = useViewState((state) => state.pointed);
  const inspected = usePosition(view);
  const { rows } = available;
  const shared = { length: view.length, times: program?.time_ns ?? null, moment: false };
  const pinned = useDetails({ ...shared, api: props.api, id: view.recording.id, available });
  const position = pointed === null ? inspected : Math.min(Math.max(pointed, 0), view.length - 1);
  return (
    <div class="panel" data-testid="panel">
      <InspectedPosition {...props} position={inspected} />
      {pinned ??
        (hovered >= 0 ? (
          <aside class="details" aria-label="Under the pointer" data-testid="under-pointer">
            <h2>{rowName(rows, hovered) || `Unnamed ${terms.item}`}</h2>
            <RowFacts {...shared} rows={rows} row={hovered} details={null} />
            <p class="muted">Click to keep this {terms.item} here, and to see its stack.</p>
          </aside>
        ) : (
          <Moment {...props} position={position} isInspected={position === inspected} />
        ))}
    </div>
  );
}

/** Inspected position, with buttons for the previous and next one and for the peak. */
function InspectedPosition({ view, position }: Props & { position: number }) {
  const terms = useTerms();
  const { peak, length } = view;
  const go = (to: number): void =>
    store.set({ position: to === peak ? null : Math.min(Math.max(to, 0), length - 1) });
  return (
    <div class="inspected">
      <button
        aria-label={`${capitalize(terms.position)} before`}
        title={`${capitalize(terms.position)} before ( [ )`}
        onClick={() => go(position - 1)}
      >
        ‹
      </button>
      <span title={`Inspected ${terms.position}`}>
        <b data-testid="inspected-position">{formatCount(position)}</b> of {formatCount(length)}
      </span>
      <button
        aria-label={`${capitalize(terms.position)} after`}
        title={`${capitalize(terms.position)} after ( ] )`}
        onClick={() => go(position + 1)}
      >
        ›
      </button>
      <button
        disabled={position === peak}
        data-testid="go-to-peak"
        title="Inspect the peak ( p )"
        onClick={() => store.set({ position: null })}
      >
        Peak
      </button>
    </div>
  );
}

interface MomentProps extends Props {
  position: number;
  /** False for the position under the pointer, at which roles are not added up. */
  isInspected: boolean;
}

/** A position: instruction, live bytes by role, and the value of each curve. */
function Moment({ view, available, program, axis, times = null, position, isInspected }: MomentProps) {
  const terms = useTerms();
  const curves = useCurves(view);
  const series = useMemo(() => usageSeries(view.usage, view.length, axis, curves), [view, axis, curves]);
  const step = stepAt(series.x, axis.at(position));
  const known = program !== null && position < program.length;
  const name = known ? program.name.at(position) : "";
  return (
    <aside class="details" aria-label={capitalize(terms.position)} data-testid="moment">
      <h2>
        {position === view.peak ? "Peak, " : ""}
        {terms.position} {formatCount(position)}
      </h2>
      <div class={`instruction ${view.recording.axis === "TIME" ? "event" : ""}`}>
        {name !== "" && <code>{name}</code>}
        {known && program.op_name.at(position) !== "" && <p class="muted">{program.op_name.at(position)}</p>}
        {known && (program.computation.at(position) !== "" || program.time_ns !== null) && (
          <p class="muted">
            {program.computation.at(position) !== "" && `in ${program.computation.at(position)} `}
            {program.time_ns !== null && `at ${formatTime(program.time_ns[position])} `}
            {view.recording.kind === "allocator" && <TraceViewerLink />}
          </p>
        )}
      </div>
      <dl class="facts">
        {times !== null && <TakenTime {...{ times, position }} />}
        {series.curves.map(({ key, max, min }) => {
          const text = (value: number): string =>
            key === "fragmentation" ? formatShare(value, 1) : formatBytes(value);
          return (
            <>
              <dt key={key}>{capitalize(curveLabels(key, terms, view)[0])}</dt>
              <dd>
                {Number.isNaN(max[step]) ? "unknown" : text(max[step])}
                {min[step] < max[step] && <span class="muted"> at least {text(min[step])} nearby</span>}
              </dd>
            </>
          );
        })}
      </dl>
      {isInspected && <RolesAt {...{ view, available, program, position }} />}
    </aside>
  );
}

/** The time of the instruction at a position, in one run. */
function TakenTime({ times: { positions }, position }: { times: TimeTables; position: number }) {
  const { measured, estimated } = positions;
  const takes = measured[position] > 0 ? formatSeconds(measured[position], 3) : "";
  const beside = estimated[position] > 0 ? `${formatSeconds(estimated[position])} estimated` : "";
  if (takes === "" && beside === "") return null;
  return (
    <>
      <dt>Time</dt>
      <dd>
        {takes}
        <span class="muted"> {beside}</span>
      </dd>
    </>
  );
}

/** Live bytes at a position by role. Away from the peak this needs all rows. */
function RolesAt({
  view,
  available,
  program,
  position,
}: Omit<MomentProps, "api" | "axis" | "times" | "isInspected">) {
  const { rows, complete } = available;
  const terms = useTerms();
  const live = useMemo(
    () => (complete || position === view.peak ? liveAt(rows, position) : new Uint32Array(0)),
    [rows, complete, position, view],
  );
  const roles = useMemo(() => [...bytesByRole(rows, live)].filter(([, bytes]) => bytes > 0), [rows, live]);
  const unexplained = Math.max(program?.unexplained?.[position] ?? 0, 0);
  const total = liveBytes(rows, live) + unexplained;
  if (live.length === 0 || rows.roles_follow) return null;
  return (
    <table class="roles-at" data-testid="roles-at">
      <tbody>
        {roles.map(([role, bytes]) => (
          <tr key={role}>
            <th scope="row">
              <RoleFilter role={role} />
            </th>
            <td>{formatBytes(bytes)}</td>
            <td class="muted">{formatShare(bytes, total)}</td>
          </tr>
        ))}
        {unexplained > 0 && (
          <tr>
            <th scope="row">{terms.unexplained}</th>
            <td>{formatBytes(unexplained)}</td>
            <td class="muted">{formatShare(unexplained, total)}</td>
          </tr>
        )}
      </tbody>
    </table>
  );
}
