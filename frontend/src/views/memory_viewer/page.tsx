import type { JSX } from "preact";
import type { Store } from "../../base/store";
import type { Api, Problem } from "../../payload/api";
import type { FirstView, Program } from "../../payload/recording";
import type { ViewState } from "../state";
import { Breakdown } from "./breakdown";
import { Caveats, Figures } from "./figures";
import type { Shown } from "./shown";
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
      <Figures view={view} />
      <Caveats caveats={view.caveats} problems={problems} />
      <section aria-label="Usage over the program">
        <UsageHeading />
        <UsageChart api={api} view={view} program={program} shown={shown} store={store} dark={dark} />
        {children}
      </section>
      <Breakdown view={view} shown={shown} program={program} store={store} dark={dark} />
    </>
  );
}

function UsageHeading(): JSX.Element {
  return (
    <header class="section-head">
      <h2>Memory over the program</h2>
      <ul class="lines" aria-label="Lines of the chart">
        <li class="live">live</li>
        <li class="unpadded">live, unpadded</li>
        <li class="reserved">reserved</li>
      </ul>
      <span class="muted hint">
        click to inspect · wheel to zoom · drag to move · Shift + drag to zoom in · double click for all
      </span>
    </header>
  );
}
