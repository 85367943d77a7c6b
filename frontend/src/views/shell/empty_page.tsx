import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { formatBytes, formatCount } from "../../base/units";
import type { Api } from "../../payload/api";
import type { Listing, Progress, Reason } from "../../payload/generated/answers";
import { type Tab, useViewState } from "../state/view_state";
import { Message, Notes } from "../widgets/message";
import type { PickersProps } from "./pickers";
import { TabsWithData } from "./tabs";

/** Time between two questions; files that are read sooner show nothing. */
const EVERY_MS = 400;

/** Placeholder of a page whose files are being read: bytes read of how many, and the elapsed time. */
function Reading({ api, run }: { api: Api; run: string }) {
  const progress = useProgress(api, run);
  return (
    <div class="placeholder" aria-busy="true">
      {progress !== null && (
        <div class="reading" data-testid="reading">
          <progress
            aria-label="Bytes read"
            max={progress.total_bytes}
            value={Math.min(progress.read_bytes, progress.total_bytes)}
          />
          <p>{progressText(progress)}</p>
        </div>
      )}
    </div>
  );
}

function progressText({ read_bytes: read, total_bytes: total, seconds }: Progress): string {
  const elapsed = `${formatCount(Math.round(seconds))} s`;
  return read < total
    ? `Reading ${formatBytes(read)} of ${formatBytes(total)}, ${elapsed}`
    : `Analyzing ${formatBytes(total)}, ${elapsed}`;
}

/** Ask for the progress of a run again and again; null while nothing is being read. */
function useProgress(api: Api, run: string): Progress | null {
  const [progress, setProgress] = useState<Progress | null>(null);
  useEffect(() => {
    setProgress(null);
    if (run === "" || api.report !== null) return;
    const abort = new AbortController();
    let timer = setTimeout(ask, EVERY_MS);
    function ask(): void {
      // A failure is that of the files, which the page shows.
      void api
        .progress({ run }, abort.signal)
        .then((found) => setProgress(found.total_bytes > 0 ? found : null))
        .catch(() => undefined)
        .then(() => {
          if (!abort.signal.aborted) timer = setTimeout(ask, EVERY_MS);
        });
    }
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [api, run]);
  return progress;
}

/** Possible reasons for a run without allocator events, by the backend's codes. */
const REASONS: readonly (readonly [code: string, title: string, about: string])[] = [
  [
    "cpu_backend",
    "CPU backend",
    "GPU and TPU allocators log events; JAX's CPU allocator does not. Run the script within " +
      "tb_memplugin.capture.track(), which records live arrays on any backend.",
  ],
  [
    "tracer_level",
    "Tracer level",
    "Allocators log events at host tracer level 2 and above, the default of jax.profiler.trace.",
  ],
  [
    "no_device_work",
    "No device work in the window",
    "Nothing was allocated or freed during the capture. Capture at least one complete step.",
  ],
  [
    "no_allocator_events",
    "No events recorded",
    "All memory was allocated before the capture started, or the allocator does not log events. " +
      "Capture from the first step, with JAX's default allocator.",
  ],
];

interface NoEventsProps {
  listing: Listing;
  /** Links to the tabs that have data. */
  children: ComponentChildren;
}

/** Message for a run without allocator events: the reason that applies, the remedy, and other possible reasons. */
function NoEvents({ listing: { empty }, children }: NoEventsProps) {
  const chosen = useViewState((state) => state.host);
  const hosts = Object.keys(empty).filter((host) => chosen === "" || host === chosen);
  const codes = new Set(hosts.map((host) => empty[host].code));
  const others = REASONS.filter(([code]) => !codes.has(code));
  return (
    <div class="message" role="status" data-testid="no-events">
      <strong>This run has no allocator events</strong>
      {[...codes].map((code) => (
        <ReasonText
          {...{ empty, code }}
          key={code}
          hosts={hosts.filter((host) => empty[host].code === code)}
        />
      ))}
      {codes.size === 0 ? (
        <>
          <p>Possible reasons:</p>
          <OtherReasons reasons={others} />
        </>
      ) : (
        <details>
          <summary>Other possible reasons</summary>
          <OtherReasons reasons={others} />
        </details>
      )}
      {children}
    </div>
  );
}

function ReasonText({
  code,
  hosts,
  empty,
}: {
  code: string;
  hosts: string[];
  empty: Record<string, Reason>;
}) {
  const title = REASONS.find(([known]) => known === code)?.[1];
  const { text, remedy } = empty[hosts[0]];
  return (
    <div class="reason" data-testid="reason" data-code={code}>
      {title !== undefined && <b>{title}</b>}
      <p>{text}</p>
      <p>{remedy}</p>
      {Object.keys(empty).length > 1 && <p class="muted">{hosts.join(", ")}</p>}
    </div>
  );
}

function OtherReasons({ reasons }: { reasons: typeof REASONS }) {
  return (
    <dl class="reasons">
      {reasons.flatMap(([code, title, about]) => [
        <dt key={`${code} title`}>{title}</dt>,
        <dd key={code}>{about}</dd>,
      ])}
    </dl>
  );
}

interface Props extends Omit<PickersProps, "recordings"> {
  api: Api;
  listing: Listing | null;
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
    if (tab === "memory_profile") return <NoEvents listing={listing}>{links}</NoEvents>;
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

function NoSnapshots({ onPaste, children }: { onPaste: () => void; children: ComponentChildren }) {
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
