import type { ComponentChildren } from "preact";
import type { Listing, Reason } from "../../payload/generated/answers";
import { useViewState } from "../state/view_state";

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

interface Props {
  listing: Listing;
  /** Links to the tabs that have data. */
  children: ComponentChildren;
}

/** Message for a run without allocator events: the reason that applies, the remedy, and other possible reasons. */
export function NoEvents({ listing: { empty }, children }: Props) {
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
