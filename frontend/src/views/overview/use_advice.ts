import { useEffect, useState } from "preact/hooks";
import type { Api } from "../../payload/api";
import type { OverviewRow } from "../../payload/generated/answers";
import type { AdviceById } from "../../payload/responses/overview";

/** Advice is worked out from every buffer: beyond these, who wants it opens the recording. */
export const MAX_ADVISED = 24;

/** What saves most in each of the first rows. One is asked for after another: the server has other things to do. */
export function useAdvice(api: Api, rows: readonly OverviewRow[] | null): AdviceById {
  const [advice, setAdvice] = useState<AdviceById>(new Map());
  useEffect(() => {
    if (rows === null) return;
    const abort = new AbortController();
    const fetchAll = async (): Promise<void> => {
      for (const { id } of rows.filter(({ remedy }) => remedy === null).slice(0, MAX_ADVISED)) {
        // What cannot be advised on is told where the recording is opened.
        const found = await api.advice({ id }, abort.signal).then(
          ({ advice }) => advice.at(0) ?? null,
          () => undefined,
        );
        if (abort.signal.aborted) return;
        if (found !== undefined) setAdvice((before) => new Map(before).set(id, found));
      }
    };
    void fetchAll();
    return () => abort.abort();
  }, [api, rows]);
  return advice;
}
