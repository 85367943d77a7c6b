import { useEffect, useState } from "preact/hooks";
import type { Api } from "../../payload/api";
import type { OverviewRow } from "../../payload/generated/answers";
import { foldHosts } from "../../layout/overview/equal_hosts";
import type { AdviceById } from "../../payload/responses/overview";

/** Advice reads every buffer, so only these rows have it; other recordings show theirs when they are opened. */
export const MAX_ADVISED = 24;

/** Fetch the best change for each of the first rows, once for equal hosts, one request at a time to leave the server free. */
export function useAdvice(api: Api, rows: readonly OverviewRow[] | null): AdviceById {
  const [advice, setAdvice] = useState<AdviceById>(new Map());
  useEffect(() => {
    if (rows === null) return;
    const abort = new AbortController();
    const fetchAll = async (): Promise<void> => {
      const wanted = foldHosts(rows.filter(({ remedy }) => remedy === null));
      for (const { row, equal } of wanted.slice(0, MAX_ADVISED)) {
        // The recording's own page shows the error.
        const found = await api.advice({ id: row.id }, abort.signal).then(
          ({ advice }) => advice.at(0) ?? null,
          () => undefined,
        );
        if (abort.signal.aborted) return;
        if (found !== undefined)
          setAdvice((before) => new Map([...before, ...equal.map(({ id }) => [id, found] as const)]));
      }
    };
    void fetchAll();
    return () => abort.abort();
  }, [api, rows]);
  return advice;
}
