import type { ComponentChildren, JSX } from "preact";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import type { Api } from "../../payload/api";
import type { ViewState } from "../state/view_state";
import { Details } from "./details";
import type { AvailableRows } from "../data/available_rows";

interface FrameProps {
  /** Full-window timeline. */
  full?: boolean;
  /** Side panel; null if nothing is selected. */
  drawer: JSX.Element | null;
  children: ComponentChildren;
}

/** Page with a side panel for the selected item. */
export function PageFrame({ full = false, drawer, children }: FrameProps): JSX.Element {
  return (
    <div class={`${full ? "full" : "page"} ${drawer === null ? "" : "with-details"}`}>
      <div class="content">{children}</div>
      {drawer}
    </div>
  );
}

interface DrawerProps {
  api: Api;
  id: string;
  /** Null until they have loaded. */
  available: AvailableRows | null;
  length: number;
  times: Float64Array | null;
  moment: boolean;
  store: Store<ViewState>;
  dark: boolean;
}

/** Return the side panel of the selected buffer; null without one. */
export function useDetails({ available, ...details }: DrawerProps): JSX.Element | null {
  const selected = useStore(details.store, (state) => state.selected);
  const row = available?.indexOf(selected) ?? -1;
  return available === null || row < 0 || selected === null ? null : (
    <Details {...details} number={selected} row={row} rows={available.rows} />
  );
}
