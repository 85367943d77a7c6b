import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { type Store, useStore } from "../../base/store";
import { formatBytes, formatCounted, formatExact, formatShare } from "../../base/units";
import { writeFilter } from "../../layout/url_values";
import type { Api } from "../../payload/api";
import type { Advice, AdviceList } from "../../payload/generated/answers";
import { copyText } from "../browser/export";
import { useTerms } from "../data/terms";
import { useFetched } from "../data/use_fetched";
import type { ViewState } from "../state/view_state";
import { ErrorMessage } from "../widgets/message";

interface PieceProps {
  piece: Advice;
  store: Store<ViewState>;
}

/**
 * One change: its saving, also as a share of the peak or of the reserved bytes, the reason, the code, and the
 * buffers concerned.
 */
function AdvicePiece({ piece, store }: PieceProps): JSX.Element {
  const { title, sentence, change, saving_bytes, saving_at_most_bytes: most } = piece;
  const { saving_of, before_bytes: before, after_bytes: after } = piece;
  const exact = saving_bytes === most;
  const share = before > 0 ? Math.min(Math.max(saving_bytes / before, 0), 1) : 0;
  return (
    <li class="piece" data-testid="advice-piece">
      <div class="piece-saving">
        <b
          title={
            exact
              ? formatExact(saving_bytes)
              : `${formatExact(saving_bytes)}, up to ${formatExact(most)}`
          }
        >
          −{formatBytes(saving_bytes)}
        </b>
        <span class="piece-bar" aria-hidden="true">
          <i style={{ width: `${100 * (1 - share)}%` }} />
        </span>
        <span class="muted" title={formatExact(after)} data-testid="piece-share">
          {formatShare(saving_bytes, before)} less{saving_of === "reserved" && " reserved"}:{" "}
          {formatBytes(after)}
        </span>
      </div>
      <div class="piece-text">
        <h3>{title}</h3>
        <p>{sentence}</p>
        {change !== "" && <Change code={change} />}
        <Buffers piece={piece} store={store} />
      </div>
    </li>
  );
}

function Change({ code }: { code: string }): JSX.Element {
  const [said, setSaid] = useState("Copy");
  const copy = (): void => {
    const say = (text: string): void => {
      setSaid(text);
      window.setTimeout(() => setSaid("Copy"), 2000);
    };
    copyText(code).then(
      () => say("Copied"),
      () => say("The browser blocked copying"),
    );
  };
  return (
    <div class="piece-change">
      <code>{code}</code>
      <button data-testid="copy-change" onClick={copy}>
        {said}
      </button>
    </div>
  );
}

/** Restrict all charts to the buffers of the advice; select a single one. */
function Buffers({ piece, store }: Pick<PieceProps, "piece" | "store">): JSX.Element | null {
  const { rows: ranges, rows_total: count, bytes } = piece;
  const terms = useTerms();
  const text = useMemo(() => writeFilter({ kind: "rows", ranges }), [ranges]);
  const on = useStore(store, (state) => state.row_filter === text);
  if (count === 0) return null;
  const show = (): void => {
    store.set({ row_filter: on ? "" : text });
    if (!on && count === 1) store.set({ selected: ranges[0][0] });
  };
  return (
    <p class="piece-buffers">
      <button class="link" data-testid="advice-rows" aria-pressed={on} onClick={show}>
        {on
          ? "Clear the filter"
          : `Show ${count === 1 ? `the ${terms.item}` : formatCounted(count, terms.item, terms.items)}`}
      </button>{" "}
      <span class="muted" title={formatExact(bytes)}>
        {formatBytes(bytes)}
      </span>
    </p>
  );
}

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
