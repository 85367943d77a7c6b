import type { JSX } from "preact";
import type { Store } from "../../base/store";
import type { Api } from "../../payload/api";
import type { Problem } from "../../payload/generated/answers";
import type { FirstView } from "../../payload/recording/recording";
import type { Program } from "../../payload/recording/program";
import type { Spans } from "../../payload/recording/spans";
import type { Axis } from "../../layout/axis/axis";
import { AdvicePanel } from "../advice/advice_panel";
import type { ViewState } from "../state/view_state";
import { Headline } from "../figures/headline";
import { Breakdown } from "../breakdown/breakdown";
import { Figures } from "../figures/figures";
import { StepGrowth } from "./step_growth";
import type { AvailableRows } from "../data/available_rows";
import { UsageSection } from "../usage/usage_section";

interface Props {
  api: Api;
  view: FirstView;
  available: AvailableRows;
  program: Program | null;
  spans: Spans | null;
  axis: Axis;
  problems: Problem[];
  store: Store<ViewState>;
  dark: boolean;
  /** The timeline, directly below the usage chart because it shares its x axis. */
  children: JSX.Element;
}

/** Sections of the page: headline, usage, breakdown and table. */
export function Sections(props: Props): JSX.Element {
  const { api, view, available, program, spans, axis, problems, store, dark, children } = props;
  return (
    <>
      <Headline headline={view.headline} caveats={view.caveats} problems={problems}>
        <Figures view={view} available={available} dark={dark} />
      </Headline>
      <UsageSection {...{ api, view, available, program, spans, axis, store, dark }}>{children}</UsageSection>
      {view.recording.axis === "TIME" && <StepGrowth api={api} recording={view.recording} store={store} />}
      <AdvicePanel api={api} id={available.complete ? view.recording.id : null} store={store} />
      <Breakdown view={view} available={available} program={program} store={store} dark={dark} />
    </>
  );
}
