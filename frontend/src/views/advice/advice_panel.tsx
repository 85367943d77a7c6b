import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Store } from "../../base/store";
import { formatBytes } from "../../base/units";
import type { AdviceList } from "../../payload/generated/answers";
import type { Api } from "../../payload/api";
import { useFetched } from "../data/use_fetched";
import { ErrorMessage } from "../widgets/message";
import type { ViewState } from "../state/view_state";
import { AdvicePiece } from "./piece";

/** Pieces shown at first. */
const MAX_SHOWN = 3;

interface Props {
  api: Api;
  /** Id of the recording; null until the first view has loaded. */
  id: string | null;
  store: Store<ViewState>;
}

/** Changes that lower the peak: savings, reasons and code. */
export function AdvicePanel({ api, id, store }: Props): JSX.Element {
  const { value, error } = useFetched(id, (key, signal) => api.advice({ id: key }, signal));
  return (
    <section aria-label="Advice" data-testid="advice" aria-busy={value === null && error === null}>
      <header class="section-head">
        <h2>Advice</h2>
        {value !== null && value.advice.length > 0 && (
          <span class="muted">
            each change simulated on its own against the peak of {formatBytes(value.peak_bytes)}; savings are
            not additive
          </span>
        )}
      </header>
      {error !== null && <ErrorMessage error={error} />}
      {value === null && error === null && <p class="muted">Replaying the peak without what could go…</p>}
      {value !== null && <AdvicePieces list={value} store={store} />}
    </section>
  );
}

function AdvicePieces({ list, store }: { list: AdviceList; store: Store<ViewState> }): JSX.Element {
  const [all, setAll] = useState(false);
  const { advice } = list;
  if (advice.length === 0) return <p class="muted">No known change would lower this peak.</p>;
  const shown = all ? advice : advice.slice(0, MAX_SHOWN);
  return (
    <>
      <ol class="pieces">
        {shown.map((piece, number) => (
          <AdvicePiece key={`${number} ${piece.kind} ${piece.title}`} piece={piece} store={store} />
        ))}
      </ol>
      {shown.length < advice.length && (
        <button class="link" data-testid="more-advice" onClick={() => setAll(true)}>
          {advice.length - shown.length} more changes
        </button>
      )}
    </>
  );
}
