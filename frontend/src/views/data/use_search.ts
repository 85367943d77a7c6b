import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { compileSearch, isLinear, plainSearch, type Search } from "../../base/search";
import type { PackedTexts } from "../../payload/tables/text_column";
import { startSearch } from "../../render/workers/workers";
import { useDeferred } from "../browser/hooks";

/**
 * Return the search for what a user typed, or a link contains, among the texts of `source`. An expression that may
 * take long is searched for in a worker; until it replies, the previous search stays.
 */
export function useSearch<T>(
  typed: string,
  source: T,
  textsOf: (source: T) => readonly (string | PackedTexts)[],
): Search {
  // Null for a search that may take more than linear time. An invalid expression is plain text. Compiling takes no
  // time, unlike matching.
  const known = useMemo(() => {
    const search = compileSearch(typed);
    return search.patterns !== null || isLinear(typed) ? search : null;
  }, [typed]);
  const waiting = useDeferred(known === null ? typed : null);
  const [found, setFound] = useState<{ typed: string; search: Search } | null>(null);
  useEffect(() => {
    if (waiting === null) return;
    // The empty text is the one of rows without a text.
    const request = { typed: waiting, texts: ["", ...textsOf(source)] };
    return startSearch(request, (search) => setFound({ typed: waiting, search }));
  }, [waiting, source]);
  const last = useRef<Search | null>(null);
  last.current = known ?? (found?.typed === typed ? found.search : (last.current ?? plainSearch(typed)));
  return last.current;
}
