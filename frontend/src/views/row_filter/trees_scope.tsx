import type { ComponentChildren, JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Store } from "../../base/store";
import type { Api } from "../../payload/api";
import type { RecordingData } from "../../payload/recording/recording";
import type { Summary } from "../../payload/recording/summary";
import type { ViewState } from "../state/view_state";
import { useWords } from "../data/terms";
import { OnlyContext, useOnly } from "./use_row_filter";
import { OnlyChip } from "./filter_chip";
import { Trees, TreesContext } from "./lazy_trees";

interface Props {
  api: Api;
  recording: Summary;
  /** Null until every row has come. */
  everything: RecordingData | null;
  store: Store<ViewState>;
  children: ComponentChildren;
}

/** Gives what is inside the trees of a recording, and the rows that all charts are confined to. */
export function TreesScope({ api, recording, everything, store, children }: Props): JSX.Element {
  const { id, axis } = recording;
  const { rest } = useWords();
  const trees = useMemo(
    () => (everything === null ? null : new Trees(api, id, everything, rest, axis === "TIME")),
    [api, id, axis, rest, everything],
  );
  const only = useOnly(store, trees, everything?.rows ?? null);
  return (
    <TreesContext.Provider value={trees}>
      <OnlyContext.Provider value={only}>
        {children}
        <OnlyChip store={store} />
      </OnlyContext.Provider>
    </TreesContext.Provider>
  );
}
