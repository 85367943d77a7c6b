import type { JSX } from "preact";
import type { Problem } from "../../payload/generated/answers";
import { AdvicePanel } from "../advice/advice_panel";
import { useFetched } from "../data/use_fetched";
import { Headline } from "../figures/headline";
import { Breakdown } from "../breakdown/breakdown";
import { AssumedCapacity } from "../figures/assumed_capacity";
import { Figures } from "../figures/figures";
import { KernelsPanel } from "./kernels_panel";
import { StepGrowth } from "./step_growth";
import type { UsageSectionProps } from "../usage/usage_section";
import { UsageSection } from "../usage/usage_section";

interface Props extends UsageSectionProps {
  problems: Problem[];
}

/** Sections of the page: headline, usage, breakdown and table. */
export function Sections(props: Props): JSX.Element {
  const { api, view, available, program, spans, axis, problems, store, dark, children } = props;
  // The lines with the most memory and with leaks are known once everything is read, roles sooner.
  const follows = view.rows.roles_follow || (available.complete && view.recording.axis === "TIME");
  const complete = useFetched(follows ? view.recording.id : null, (id, signal) =>
    api.headline({ id }, signal),
  );
  return (
    <>
      <Headline
        headline={complete.value?.headline ?? view.headline}
        grows={view.rows.roles_follow && complete.value === null}
        caveats={view.caveats}
        problems={problems}
      >
        <Figures view={view} available={available} dark={dark} />
        <AssumedCapacity recordings={[view.recording]} store={store} />
      </Headline>
      <UsageSection {...{ api, view, available, program, spans, axis, store, dark }}>{children}</UsageSection>
      {view.recording.axis === "TIME" && <StepGrowth api={api} recording={view.recording} store={store} />}
      <AdvicePanel api={api} id={available.complete ? view.recording.id : null} store={store} />
      {view.recording.kind === "program" && <KernelsPanel api={api} id={view.recording.id} />}
      <Breakdown view={view} available={available} program={program} store={store} dark={dark} />
    </>
  );
}
