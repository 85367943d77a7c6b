import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Store } from "../../base/store";
import type { Api, Problem } from "../../payload/api";
import type { FirstView, Program, Spans } from "../../payload/recording";
import { hasStack } from "../../layout/live_set";
import type { Axis } from "../../layout/axis";
import type { ViewState } from "../state";
import { useWords } from "../words";
import { Breakdown } from "./breakdown";
import { Caveats, Figures } from "./figures";
import { Growth } from "./growth";
import { Inspected } from "./inspected";
import type { Shown } from "./shown";
import { usePosition } from "./use_position";
import { AxisChoices } from "./axis_choices";
import { SpanLanes } from "./span_lanes";
import { UsageChart } from "./usage_chart";

interface Props {
  api: Api;
  view: FirstView;
  shown: Shown;
  program: Program | null;
  spans: Spans | null;
  axis: Axis;
  problems: Problem[];
  store: Store<ViewState>;
  dark: boolean;
  /** The timeline, which stands right under the usage chart and shares its x axis. */
  children: JSX.Element;
}

/** The answer in words, then the pictures that prove it. */
export function Page(props: Props): JSX.Element {
  const { api, view, shown, program, spans, axis, problems, store, dark, children } = props;
  const words = useWords();
  return (
    <>
      <p class="headline" data-testid="headline">
        {view.headline}
      </p>
      <Figures view={view} shown={shown} dark={dark} />
      <Caveats caveats={view.caveats} problems={problems} />
      <section aria-label={`Usage over the ${words.whole}`}>
        <UsageHeading view={view} program={program} store={store} />
        {spans !== null && program?.time_ns != null && (
          <SpanLanes spans={spans} times={program.time_ns} axis={axis} store={store} />
        )}
        <UsageChart {...{ api, view, program, axis, shown, store, dark }} />
        {children}
      </section>
      {view.recording.kind === "allocator" && <Growth api={api} id={view.recording.id} store={store} />}
      <Breakdown view={view} shown={shown} program={program} store={store} dark={dark} />
    </>
  );
}

function UsageHeading({ view, program, store }: Pick<Props, "view" | "program" | "store">): JSX.Element {
  const words = useWords();
  const position = usePosition(store, view);
  const allocator = view.recording.kind === "allocator";
  const ceiling = !allocator ? "reserved" : view.recording.capacity_bytes === null ? null : "capacity";
  const stack = useMemo(() => hasStack(program), [program]);
  return (
    <header class="section-head">
      <h2>Memory over the {words.whole}</h2>
      <ul class="lines" aria-label="Lines of the chart">
        <li class="live">{words.live}</li>
        <li class="unpadded">{stack ? "heap alone" : `${words.live}, ${words.requested}`}</li>
        {ceiling !== null && <li class="reserved">{ceiling}</li>}
      </ul>
      {allocator && <AxisChoices capacity={ceiling !== null} store={store} />}
      <Inspected position={position} peak={view.peak} length={view.length} program={program} store={store} />
    </header>
  );
}
