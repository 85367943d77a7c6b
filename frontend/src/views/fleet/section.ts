import type { Store } from "../../base/store";
import type { Api } from "../../payload/api";
import type { Fleet } from "../../payload/responses/fleet";
import type { ViewState } from "../state/view_state";

/** What the parts of the Fleet tab share. */
export interface FleetProps {
  api: Api;
  fleet: Fleet;
  /** The memory whose devices are shown. */
  memory: string;
  store: Store<ViewState>;
  dark: boolean;
}
