import type { JSX } from "preact";
import type { Store } from "../../base/store";
import type { Listing, Runs } from "../../payload/generated/answers";
import type { RecordingOptions } from "../../payload/choose_recording";
import { Message } from "../widgets/message";
import type { Tab, ViewState } from "../state/view_state";
import { NoEvents } from "./no_events";
import { openTab } from "./tabs";

interface Props {
  runs: Runs | null;
  listing: Listing | null;
  options: RecordingOptions | null;
  tab: Tab;
  store: Store<ViewState>;
  onPaste: () => void;
}

/** Why there is no recording to show, and what to do. */
export function EmptyPage({ runs, listing, options, tab, store, onPaste }: Props): JSX.Element {
  if (runs !== null && runs.runs.length === 0)
    return (
      <Message title="No profile to show">
        {runs.message ??
          `Nothing was captured below ${runs.logdir}. Write a profile there with jax.profiler.trace, then reload.`}{" "}
        <button class="link" data-testid="paste-here" onClick={onPaste}>
          Paste an out-of-memory error
        </button>{" "}
        instead, if there is one.
      </Message>
    );
  if (options === null || listing === null) return <div class="placeholder" aria-busy="true" />;
  const { problems, recordings } = listing;
  if (options.missing === null && problems.length === 0) {
    if (tab === "memory_profile") return <NoEvents empty={listing.empty} store={store} />;
    if (tab === "snapshots") return <NoSnapshots onPaste={onPaste} />;
  }
  const [title, advice] =
    options.missing !== null
      ? [options.missing, "Choose one of those listed above."]
      : problems.length > 0
        ? ["Nothing could be read from this run", "This is what is wrong with its files."]
        : [
            "This run holds no compiled program",
            "A profile carries the programs that ran while it was captured: capture at least one step with jax.profiler.trace.",
          ];
  const allocators = tab === "memory_viewer" && recordings.some(({ axis }) => axis === "TIME");
  return (
    <>
      <Message title={title}>
        {advice}
        {allocators && (
          <>
            {" "}
            Its allocators did write events:{" "}
            <button
              class="link"
              data-testid="to-memory-profile"
              onClick={() => openTab(store, "memory_profile")}
            >
              Memory Profile
            </button>
          </>
        )}
      </Message>
      {problems.map(({ file, text }) => (
        <Message key={file} error title={file}>
          {text}
        </Message>
      ))}
    </>
  );
}

function NoSnapshots({ onPaste }: Pick<Props, "onPaste">): JSX.Element {
  return (
    <Message title="This run holds nothing of one moment">
      Device memory profiles are shown here: put what jax.profiler.save_device_memory_profile writes into the
      run&apos;s folder. So are errors that ran out of memory: as .oom.txt files there, or{" "}
      <button class="link" data-testid="paste-here" onClick={onPaste}>
        pasted
      </button>
      .
    </Message>
  );
}
