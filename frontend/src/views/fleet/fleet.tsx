import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import type { Api } from "../../payload/api";
import type { OnPageState } from "../data/use_recording";
import { PageFrame } from "../details/page_frame";
import type { ViewState } from "../state/view_state";
import { ErrorMessage, Message } from "../widgets/message";
import { FleetHeadline } from "./headline";
import type { FleetProps } from "./section";
import { ScanProgress } from "./scan_progress";
import { useFleet } from "./use_fleet";

interface Props {
  api: Api;
  run: string;
  store: Store<ViewState>;
  dark: boolean;
  onState: OnPageState;
}

/** The devices of the capture that contains a run: the worst one with its cause, outliers, and missing hosts. */
export function FleetPage({ api, run, store, dark, onState }: Props): JSX.Element {
  const { value: fleet, error } = useFleet(api, run);
  const wanted = useStore(store, (state) => state.fleet_memory);
  const settled = error !== null || (fleet !== null && !fleet.meta.running);
  useEffect(() => onState(error !== null ? "error" : settled ? "ready" : "loading", null), [error, settled]);
  // Written to the URL, so that a shared link means the same after a newer run has appeared.
  useEffect(() => {
    if (store.get().tab === "fleet") store.fill({ run });
  }, [run]);
  if (error !== null) return <ErrorMessage error={error} />;
  if (fleet === null) return <div class="placeholder" aria-busy="true" />;
  const memories = fleet.meta.capture?.memories ?? [];
  const memory = (memories.find((each) => each.memory === wanted) ?? memories.at(0))?.memory ?? "";
  const shared: FleetProps = { api, fleet, memory, store, dark };
  return (
    <PageFrame drawer={null}>
      {fleet.meta.problem !== "" && (
        <Message error title="Reading the capture failed">
          {fleet.meta.problem}
        </Message>
      )}
      <FleetHeadline {...shared} />
      {fleet.meta.running && <ScanProgress {...fleet.meta} />}
    </PageFrame>
  );
}
