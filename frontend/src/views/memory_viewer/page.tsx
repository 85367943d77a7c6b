import type { JSX } from "preact";
import type { Store } from "../../base/store";
import type { Api, Problem } from "../../payload/api";
import type { FirstView, Program } from "../../payload/recording";
import type { ViewState } from "../state";
import { Breakdown } from "./breakdown";
import { Caveats, Figures } from "./figures";
import { Inspected } from "./inspected";
import type { Shown } from "./shown";
import { usePosition } from "./use_position";
import { UsageChart } from "./usage_chart";

interface Props {
  api: Api;
  view: FirstView;
  shown: Shown;
  program: Program | null;
  problems: Problem[];
  store: Store<ViewState>;
  dark: boolean;
  /** The timeline, which stands right under the usage chart and shares its x axis. */
  children: JSX.Element;
}

/** The answer in words, then the pictures that prove it. */
export function Page(props: Props): JSX.Element {
  const { api, view, shown, program, problems, store, dark, children } = props;
  return (
    <>
      <p class="headline" data-testid="headline">
        {view.headline}
      </p>
      <Figures view={view} shown={shown} dark={dark} />
      <Caveats caveats={view.caveats} problems={problems} />
      <section aria-label="Usage over the program">
        <UsageHeading view={view} program={program} store={store} />
        <UsageChart api={api} view={view} program={program} shown={shown} store={store} dark={dark} />
        {children}
      </section>
      <Breakdown view={view} shown={shown} program={program} store={store} dark={dark} />
    </>
  );
}

function UsageHeading({ view, program, store }: Pick<Props, "view" | "program" | "store">): JSX.Element {
  const position = usePosition(store, view);
  return (
    <header class="section-head">
      <h2>Memory over the program</h2>
      <ul class="lines" aria-label="Lines of the chart">
        <li class="live">live</li>
        <li class="unpadded">live, unpadded</li>
        <li class="reserved">reserved</li>
      </ul>
      <Inspected position={position} peak={view.peak} length={view.length} program={program} store={store} />
    </header>
  );
}
