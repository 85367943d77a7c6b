import type { JSX } from "preact";
import { useContext } from "preact/hooks";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import type { ViewState } from "../state/view_state";
import { RowFilterContext } from "./use_row_filter";

/** Label of the row filter that applies to all charts, with a button that clears it. */
export function FilterChip({ store }: { store: Store<ViewState> }): JSX.Element | null {
  const on = useStore(store, (state) => state.row_filter !== "");
  const { label, error } = useContext(RowFilterContext);
  if (!on) return null;
  return (
    <div class="filter-chip" role="status" data-testid="filter-chip">
      {error === null && <span class="muted">Only</span>}
      <b title={label}>
        <bdi>{label}</bdi>
      </b>
      {error !== null && <span>{error}</span>}
      <button
        class="quiet"
        data-testid="filter-clear"
        aria-label="Clear the filter"
        title="Clear the filter"
        onClick={() => store.set({ row_filter: "" })}
      >
        ×
      </button>
    </div>
  );
}
