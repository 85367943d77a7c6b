import type { JSX } from "preact";
import { useMemo, useRef } from "preact/hooks";
import type { Store } from "../../base/store";
import type { Axis } from "../../layout/axis/axis";
import { type CurveKey, availableCurves, isNear } from "../../layout/usage/usage_series";
import type { Api } from "../../payload/api";
import type { FirstView } from "../../payload/recording/recording";
import type { Summary } from "../../payload/generated/answers";
import type { Program } from "../../payload/recording/program";
import type { Spans } from "../../payload/recording/spans";
import type { ViewState } from "../state/view_state";
import { useTerms } from "../data/terms";
import type { Picture } from "../drawing/picture";
import { SavePicture } from "../drawing/save_picture";
import { TraceViewerLink } from "../widgets/xprof_link";
import { AxisChoices } from "../widgets/axis_choices";
import { CurveLegend } from "./legend";
import { Executions } from "./executions";
import { InspectedPosition } from "./inspected_position";
import type { AvailableRows } from "../data/available_rows";
import { SpanLanes } from "./span_lanes";
import { UsageChart } from "./usage_chart";
import { usePosition } from "../state/use_position";

export interface UsageSectionProps {
  api: Api;
  view: FirstView;
  available: AvailableRows;
  program: Program | null;
  spans: Spans | null;
  axis: Axis;
  /** Snapshots of the same memory, in order of time. */
  snapshots?: readonly Summary[] | undefined;
  store: Store<ViewState>;
  dark: boolean;
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
      <InspectedPosition
        position={position}
        peak={view.peak}
        length={view.length}
        program={program}
        store={store}
      />
      {view.recording.kind === "allocator" && <TraceViewerLink store={store} />}
      <SavePicture of="usage chart" fileName={usageName(view)} draw={() => picture.current()} />
    </header>
  );
}

function usageName({ recording: { title, memory } }: FirstView): string {
  return `${title}-${memory}-usage`;
}
