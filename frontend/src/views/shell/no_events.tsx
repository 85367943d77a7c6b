import type { JSX } from "preact";
import type { Store } from "../../base/store";
import { useStore } from "../../base/store";
import type { Reason } from "../../payload/generated/answers";
import type { ViewState } from "../state/view_state";
import { openTab } from "./tabs";

/** What can keep a run from having allocator events, by the codes of the backend's reasons. */
const REASONS: readonly (readonly [code: string, title: string, about: string])[] = [
  [
    "cpu_backend",
    "CPU backend",
    "The allocators of GPUs and TPUs write such events; that of a CPU does not. Run the script within tb_memplugin.capture.track(), which writes them on any backend.",
  ],
  [
    "tracer_level",
    "Tracer level",
    "The events come with host tracing. Capture with a host tracer level of 2 or more, which is what jax.profiler.trace does unless it is told otherwise.",
  ],
  [
    "no_device_work",
    "No device work in the window",
    "Nothing was allocated or freed while the profile was taken. Capture at least one whole step.",
  ],
  [
    "no_allocator_events",
    "No events recorded",
    "All memory was allocated before the profile started, or the allocator does not log events. Capture from the first step, with JAX's default allocator.",
  ],
];

interface Props {
  empty: Record<string, Reason>;
  store: Store<ViewState>;
}

/** Why a run has no allocator events: the reason that applies, what to do, and folded away what else it could be. */
export function NoEvents({ empty, store }: Props): JSX.Element {
  const chosen = useStore(store, (state) => state.host);
  const hosts = Object.keys(empty).filter((host) => chosen === "" || host === chosen);
  const codes = new Set(hosts.map((host) => empty[host].code));
  const others = REASONS.filter(([code]) => !codes.has(code));
  return (
    <div class="message" role="status" data-testid="no-events">
      <strong>This run has no allocator events</strong>
      {[...codes].map((code) => (
        <ReasonText
          key={code}
          code={code}
          hosts={hosts.filter((host) => empty[host].code === code)}
          {...{ empty }}
        />
      ))}
      {codes.size === 0 ? (
        <>
          <p>One of these is the reason:</p>
          <OtherReasons reasons={others} />
        </>
      ) : (
        <details>
          <summary>Other reasons why a profile has none</summary>
          <OtherReasons reasons={others} />
        </details>
      )}
      <p>
        The{" "}
        <button class="link" data-testid="to-memory-viewer" onClick={() => openTab(store, "memory_viewer")}>
          Memory Viewer
        </button>{" "}
        shows what the programs of this run hold, by their compiled schedule: it needs no events.
      </p>
    </div>
  );
}

function ReasonText({
  code,
  hosts,
  empty,
}: { code: string; hosts: string[] } & Pick<Props, "empty">): JSX.Element {
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

function OtherReasons({ reasons }: { reasons: typeof REASONS }): JSX.Element {
  return (
    <dl class="reasons">
      {reasons.flatMap(([code, title, about]) => [
        <dt key={`${code} title`}>{title}</dt>,
        <dd key={code}>{about}</dd>,
      ])}
    </dl>
  );
}
