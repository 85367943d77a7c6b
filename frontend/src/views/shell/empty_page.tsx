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

/** Reason why there is no recording to show, and the remedy. */
export function EmptyPage({ runs, listing, options, tab, store, onPaste }: Props): JSX.Element {
  if (runs !== null && runs.runs.length === 0)
    return (
      <Message title="No profile found">
        {runs.message ??
          `There are no profiles below ${runs.logdir}. Write one there with jax.profiler.trace, then reload.`}{" "}
        <button class="link" data-testid="paste-here" onClick={onPaste}>
          Paste an out-of-memory error
        </button>{" "}
        instead.
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
      ? [options.missing, "Choose another one above."]
      : problems.length > 0
        ? ["This run could not be read", "Its files have these problems:"]
        : [
            "This run has no compiled programs",
            "A profile contains the programs that ran during the capture. Capture at least one step with jax.profiler.trace.",
          ];
  const allocators = tab === "memory_viewer" && recordings.some(({ axis }) => axis === "TIME");
  return (
    <>
      <Message title={title}>
        {advice}
        {allocators && (
          <>
            {" "}
            Its allocators logged events:{" "}
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
    <Message title="This run has no device profiles">
      This tab shows device memory profiles: save them into the run&apos;s folder with
      jax.profiler.save_device_memory_profile. It also shows out-of-memory errors: save their text there as
      .oom.txt files, or{" "}
      <button class="link" data-testid="paste-here" onClick={onPaste}>
        paste it
      </button>
      .
    </Message>
  );
}
