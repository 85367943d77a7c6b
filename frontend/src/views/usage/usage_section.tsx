import type { JSX } from "preact";
import { useMemo, useRef } from "preact/hooks";
import type { Store } from "../../base/store";
import { formatCount } from "../../base/units";
import type { Axis } from "../../layout/axis/axis";
import { formatTime } from "../../layout/axis/ticks";
import { availableCurves, type CurveKey, isNear } from "../../layout/usage/usage_series";
import type { Api } from "../../payload/api";
import type { Summary } from "../../payload/generated/answers";
import type { FirstView, Program, Spans } from "../../payload/recording/recording";
import { capitalize, useTerms } from "../data/terms";
import type { AvailableRows } from "../data/use_recording";
import type { Picture } from "../drawing/picture";
import { SavePicture } from "../drawing/save_picture";
import { usePosition, type ViewProps, type ViewState } from "../state/view_state";
import { AxisChoices } from "../widgets/choice";
import { TraceViewerLink } from "../widgets/xprof_link";
import { CurveLegend } from "./curves";
import { Executions } from "./executions";
import { SpanLanes } from "./span_lanes";
import { UsageChart } from "./usage_chart";

interface Props {
  position: number;
  peak: number;
  length: number;
  program: Program | null;
  store: Store<ViewState>;
}

/** Inspected position, with buttons for the previous and next one and for the peak. */
function InspectedPosition({ position, peak, length, program, store }: Props): JSX.Element {
  const go = (to: number): void =>
    store.set({ position: to === peak ? null : Math.min(Math.max(to, 0), length - 1) });
  const terms = useTerms();
  const times = program?.time_ns ?? null;
  const known = program !== null && position < program.length;
  return (
    <div class="inspected">
      <code title={known ? program.op_name.at(position) : ""}>{known ? program.name.at(position) : ""}</code>
      <button
        class="link"
        disabled={position === peak}
        title="Inspect the peak ( p )"
        onClick={() => store.set({ position: null })}
      >
        {position === peak ? "at the peak" : "go to the peak"}
      </button>
      <span class="stepper">
        <button
          aria-label={`${capitalize(terms.position)} before`}
          title={`${capitalize(terms.position)} before ( [ )`}
          onClick={() => go(position - 1)}
        >
          ‹
        </button>
        <span>
          {terms.position} <b data-testid="inspected-position">{formatCount(position)}</b> of{" "}
          {formatCount(length)}
          {times !== null && known && ` at ${formatTime(times[position])}`}
        </span>
        <button
          aria-label={`${capitalize(terms.position)} after`}
          title={`${capitalize(terms.position)} after ( ] )`}
          onClick={() => go(position + 1)}
        >
          ›
        </button>
      </span>
    </div>
  );
}

export interface UsageSectionProps extends ViewProps {
  api: Api;
  view: FirstView;
  available: AvailableRows;
  program: Program | null;
  spans: Spans | null;
  axis: Axis;
  /** Snapshots of the same memory, in order of time. */
  snapshots?: readonly Summary[] | undefined;
  /** The timeline, directly below the usage chart because it shares its x axis. */
  children: JSX.Element | null;
}

/** Memory over the axis: spans, usage chart, timeline, and the programs that ran. */
export function UsageSection(props: UsageSectionProps): JSX.Element {
  const { api, view, available, program, spans, axis, snapshots, store, dark, children } = props;
  const terms = useTerms();
  const { axis: kind, kind: source, capacity_bytes, reserved_bytes } = view.recording;
  const known = useMemo(() => {
    const curves = availableCurves(
      view.usage,
      kind !== "TIME" || capacity_bytes !== null,
      source === "program" && isNear(capacity_bytes, reserved_bytes),
    );
    // Samples of a job have no requested bytes.
    return curves.filter((key) => source !== "watch" || key !== "requested");
  }, [view]);
  const picture = useRef<() => Picture | null>(() => null);
  return (
    <>
      <section aria-label={`Usage over the ${terms.extent}`}>
        <UsageHeading {...{ view, program, known, store, dark, picture }} />
        {spans !== null && program?.time_ns != null && (
          <SpanLanes spans={spans} times={program.time_ns} axis={axis} store={store} />
        )}
        <UsageChart {...{ api, view, program, axis, known, available, snapshots, store, dark, picture }} />
        {children}
      </section>
      {view.recording.kind === "allocator" && available.complete && <Executions {...{ api, view, store }} />}
    </>
  );
}

type HeadingProps = Pick<UsageSectionProps, "view" | "program" | "store" | "dark"> & {
  known: readonly CurveKey[];
  picture: { current: () => Picture | null };
};

function UsageHeading({ view, program, known, store, dark, picture }: HeadingProps): JSX.Element {
  const terms = useTerms();
  const position = usePosition(store, view);
  // Samples of a job come at equal intervals, except where older ones were dropped.
  const timed = view.recording.kind !== "watch" && (program === null || program.time_ns !== null);
  return (
    <header class="section-head">
      <h2>Memory over the {terms.extent}</h2>
      <CurveLegend view={view} known={known} store={store} dark={dark} />
      {view.recording.axis === "TIME" && (
        <AxisChoices timed={timed} capacity={known.includes("ceiling")} store={store} />
      )}
      <InspectedPosition {...{ position, program, store }} peak={view.peak} length={view.length} />
      {view.recording.kind === "allocator" && <TraceViewerLink store={store} />}
      <SavePicture of="usage chart" fileName={usageName(view)} draw={() => picture.current()} />
    </header>
  );
}

function usageName({ recording: { title, memory } }: FirstView): string {
  return `${title}-${memory}-usage`;
}
