import type { ComponentChildren, JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Store } from "../../base/store";
import type { Api } from "../../payload/api";
import type { RecordingData } from "../../payload/recording/recording";
import type { Summary } from "../../payload/generated/answers";
import type { ViewState } from "../state/view_state";
import { useTerms } from "../data/terms";
import { RowFilterContext, useRowFilter } from "./use_row_filter";
import { FilterChip } from "./filter_chip";
import { LazyTrees, LazyTreesContext } from "./lazy_trees";

interface Props {
  api: Api;
  recording: Summary;
  /** Null until all rows have loaded. */
  everything: RecordingData | null;
  store: Store<ViewState>;
  children: ComponentChildren;
}

/** Provide the trees of a recording and the row filter to the components inside. */
export function TreesScope({ api, recording, everything, store, children }: Props): JSX.Element {
  const { id, axis } = recording;
  const { unexplained: rest } = useTerms();
  const trees = useMemo(
    () => (everything === null ? null : new LazyTrees(api, id, everything, rest, axis === "TIME")),
    [api, id, axis, rest, everything],
  );
  const filteredRows = useRowFilter(store, trees, everything?.rows ?? null);
  return (
    <LazyTreesContext.Provider value={trees}>
      <RowFilterContext.Provider value={filteredRows}>
        {children}
        <FilterChip store={store} />
      </RowFilterContext.Provider>
    </LazyTreesContext.Provider>
  );
}
