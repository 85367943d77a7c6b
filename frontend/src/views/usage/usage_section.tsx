import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import type { Axis } from "../../layout/axis/axis";
import type { Api } from "../../payload/api";
import type { Summary } from "../../payload/generated/answers";
import type { FirstView, Program, Spans } from "../../payload/recording/recording";
import { useTerms } from "../data/terms";
import type { AvailableRows } from "../data/use_recording";
import type { Picture } from "../drawing/picture";
import { SavePicture } from "../drawing/save_picture";
import { AxisChoices } from "../widgets/choice";
import { CurveLegend, useCurves } from "./curves";
import { SpanLanes } from "./span_lanes";
import { UsageChart } from "./usage_chart";

export interface UsageSectionProps {
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

/** Charts along the x axis in one frame: toolbar, spans, usage chart and timeline. */
export function UsageSection(props: UsageSectionProps) {
  const { api, view, available, program, spans, axis, snapshots, children } = props;
  const terms = useTerms();
  const { axis: kind, kind: source, title, memory } = view.recording;
  const known = useCurves(view);
  const picture = useRef<() => Picture | null>(() => null);
  // Samples of a job come at equal intervals, except where older ones were dropped.
  const timed = source !== "watch" && (program === null || program.time_ns !== null);
  return (
    <section
      class={children === null ? "frame curve-only" : "frame"}
      aria-label={`Memory over the ${terms.extent}`}
      data-testid="frame"
    >
      <header class="frame-head">
        <CurveLegend view={view} known={known} />
        {kind === "TIME" && <AxisChoices timed={timed} capacity={known.includes("ceiling")} />}
        <SavePicture of="usage chart" fileName={`${title}-${memory}-usage`} draw={() => picture.current()} />
      </header>
      <div class={kind === "TIME" && source !== "watch" ? "frame-lanes timed" : "frame-lanes"}>
        {spans !== null && program?.time_ns != null && (
          <SpanLanes spans={spans} times={program.time_ns} axis={axis} />
        )}
      </div>
      <UsageChart {...{ api, view, axis, known, available, snapshots, picture }} above={children !== null} />
      {children}
    </section>
  );
}
