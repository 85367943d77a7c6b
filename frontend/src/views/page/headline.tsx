import type { ComponentChildren, JSX } from "preact";
import { type Store, useStore } from "../../base/store";
import { formatBytes, formatCount, formatExact, parseBytes } from "../../base/units";
import type { Caveat, Problem, Summary } from "../../payload/generated/answers";
import { ACCELERATORS, MEMORY_SPACES } from "../../payload/generated/constants";
import { useDraft } from "../browser/use_draft";
import type { ViewState } from "../state/view_state";

/** Caveats shown at first; more would push the charts out of view. */
const MAX_CAVEATS = 3;

/** Caveats of the recording, and files of the run that could not be read. */
function Caveats({ caveats, problems }: { caveats: Caveat[]; problems: Problem[] }): JSX.Element | null {
  const lines = [
    ...caveats.map(({ code, text, bytes }) => (
      <li key={code + text}>
        {text}
        {bytes !== null && <b title={formatExact(bytes)}>{` ${formatBytes(bytes)}`}</b>}
      </li>
    )),
    ...problems.map(({ file, text }) => (
      <li key={file} class="problem" data-testid="problem">
        <code>{file}</code> {text}
      </li>
    )),
  ];
  if (lines.length === 0) return null;
  const hidden = lines.slice(MAX_CAVEATS);
  return (
    <div class="caveats" data-testid="caveats">
      <ul aria-label="Caveats">{lines.slice(0, MAX_CAVEATS)}</ul>
      {hidden.length > 0 && (
        <details>
          <summary>{formatCount(hidden.length)} more</summary>
          <ul>{hidden}</ul>
        </details>
      )}
    </div>
  );
}

interface Props {
  headline: string;
  /** The rest of the headline has not loaded: its space is kept free. */
  grows?: boolean;
  /** The headline is a failure or a leak. */
  alarm?: boolean;
  caveats: Caveat[];
  problems: Problem[];
  /** Details under the headline: figures or advice. */
  children?: ComponentChildren;
}

/** Top of every page: headline, figures, advice and caveats. */
export function Headline(props: Props): JSX.Element {
  const { headline, grows = false, alarm = false, caveats, problems, children } = props;
  return (
    <>
      <p
        class={["headline", grows && "grows", alarm && "bad"].filter(Boolean).join(" ")}
        data-testid="headline"
      >
        {headline}
      </p>
      {children}
      <Caveats caveats={caveats} problems={problems} />
    </>
  );
}

/** What the server calls the source of a capacity that a user typed. */
const ASSUMED = "assumed";

const BYTES_BY_NAME = new Map(
  ACCELERATORS.flatMap(({ name, bytes, aliases }) =>
    [name, ...aliases].map((each) => [each, bytes] as const),
  ),
);

/** Input for the capacity of memories whose profile records none. */
export function AssumedCapacity(props: {
  recordings: readonly Summary[];
  store: Store<ViewState>;
}): JSX.Element | null {
  const { recordings, store } = props;
  const capacity = useStore(store, (state) => state.capacity);
  const field = useDraft(capacity === null ? "" : `${capacity / 2 ** 30} GiB`, (typed) => {
    const bytes = Math.round(BYTES_BY_NAME.get(typed.trim().toLowerCase()) ?? parseBytes(typed) ?? 0);
    store.set({ capacity: bytes > 0 && bytes <= Number.MAX_SAFE_INTEGER / 8 ? bytes : null });
  });
  const isUnknown = recordings.some(
    (recording) =>
      isMainMemory(recording) && (recording.capacity_bytes === null || recording.capacity_source === ASSUMED),
  );
  if (!isUnknown) return null;
  return (
    <label
      class="assumed-capacity muted"
      title={
        "The profile does not record the capacity. Figures and charts use the size or the accelerator that you " +
        "type; the URL keeps it."
      }
    >
      Assumed capacity{" "}
      <input
        type="text"
        size={16}
        placeholder="v5e, or 15.75 GiB"
        list="chips"
        data-testid="assumed-capacity"
        {...field}
      />
      <datalist id="chips">
        {ACCELERATORS.map(({ name, bytes }) => (
          <option key={name} value={name} label={formatBytes(bytes)} />
        ))}
      </datalist>
    </label>
  );
}

/** Memories on the chip and of the host have sizes of their own. */
function isMainMemory({ kind, memory }: Summary): boolean {
  return kind !== "program" || memory === MEMORY_SPACES[0];
}
