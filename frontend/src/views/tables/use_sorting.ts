import { useMemo } from "preact/hooks";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import type { Sorting } from "../../layout/url_values/sorting";
import { readSorting, writeSorting } from "../../layout/url_values/sorting";
import type { ViewState } from "../state/view_state";

/** Return a table's sorting, which the URL carries, and its setter. `first` is the initial sorting: always the same object. */
export function useSorting<Key extends string>(
  store: Store<ViewState>,
  columns: readonly { key: Key }[],
  first: Sorting<Key>,
  where: "sort" | "tree_sort" = "sort",
): [Sorting<Key>, (sorting: Sorting<Key>) => void] {
  const text = useStore(store, (state) => state[where]);
  const keys = columns.map(({ key }) => key);
  const sorting = useMemo(() => readSorting(text, keys, first), [text, keys.join(), first]);
  // The URL omits the initial sorting.
  const begins = writeSorting(first);
  const set = (next: Sorting<Key>): void => {
    const written = writeSorting(next);
    store.set({ [where]: written === begins ? "" : written });
  };
  return [sorting, set];
}
