import type { ComponentChildren } from "preact";
import type { Api } from "../../payload/api";
import type { Listing, Runs } from "../../payload/generated/answers";
import type { RecordingOptions } from "../../payload/choose_recording";
import { Message, Notes } from "../widgets/message";
import type { Tab } from "../state/view_state";
import { NoEvents } from "./no_events";
import { Reading } from "./reading";
import { TabsWithData } from "./tabs_with_data";

interface Props {
  api: Api;
  run: string;
  runs: Runs | null;
  listing: Listing | null;
  options: RecordingOptions | null;
  tab: Tab;
  onPaste: () => void;
}

/** Reason why there is no recording to show, and the remedy. */
export function EmptyPage({ api, run, runs, listing, options, tab, onPaste }: Props) {
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
  if (options === null || listing === null) return <Reading api={api} run={run} />;
  const { problems, recordings } = listing;
  const links = <TabsWithData recordings={recordings} />;
  if (options.missing === null && problems.length === 0) {
    if (tab === "memory_profile") return <NoEvents {...{ listing }}>{links}</NoEvents>;
    if (tab === "snapshots") return <NoSnapshots onPaste={onPaste}>{links}</NoSnapshots>;
  }
  const [title, advice] =
    options.missing !== null
      ? [options.missing, "Choose one above."]
      : recordings.length === 0 && problems.length > 0
        ? ["This run could not be read", "Its files have these problems:"]
        : [NOTHING[tab] ?? "", problems.length > 0 ? "Some files have problems:" : ADVICE[tab]];
  return (
    <>
      <Message title={title} more={links}>
        {advice}
      </Message>
      <Notes notes={listing.notes} />
      {problems.map(({ file, text }) => (
        <Message key={file} error title={file}>
          {text}
        </Message>
      ))}
    </>
  );
}

const NOTHING: Partial<Record<Tab, string>> = {
  memory_viewer: "This run has no compiled programs",
  memory_profile: "This run has no allocator events",
  snapshots: "This run has no device profiles",
};

const ADVICE: Partial<Record<Tab, string>> = {
  memory_viewer:
    "A profile contains the programs that ran during the capture. Capture at least one step with jax.profiler.trace.",
};

interface NoSnapshotsProps {
  onPaste: () => void;
  children: ComponentChildren;
}

function NoSnapshots({ onPaste, children }: NoSnapshotsProps) {
  return (
    <Message title="This run has no device profiles" more={children}>
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
