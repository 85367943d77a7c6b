import { useMemo, useState } from "preact/hooks";
import { asError } from "../../base/errors";
import { type Finding, type FindingKind, findingsOf } from "../../layout/fleet/findings";
import type { Session } from "../../payload/generated/answers";
import { CellLink, type Column, column } from "../tables/columns";
import { ErrorMessage } from "../widgets/message";
import { OtherFaults } from "./captures";
import { openById } from "./open_device";
import { ListTable } from "../tables/table";
import { type FleetProps, sessionTime } from "./section";

const KINDS: Record<FindingKind, string> = {
  missing: "Missing",
  unreadable: "Unreadable",
  oom: "Out of memory",
  program: "Another program",
  leak: "Leak",
};

const FINDINGS: readonly Column<Finding>[] = [
  column("text", "found", "Finding", "What was found", ({ kind }) => KINDS[kind], {
    csv: "finding",
    track: "116px",
  }),
  column("text", "found_hosts", "Hosts", "The hosts that it is about", ({ hosts }) => hosts, {
    csv: "hosts",
    track: "minmax(150px, .4fr)",
  }),
  column("count", "found_count", "Count", "Number of hosts", ({ count }) => count, {
    csv: "host_count",
    track: "56px",
  }),
  column("text", "found_text", "Details", "Reason and remedy, or what differs", ({ text }) => text, {
    csv: "details",
    track: "minmax(300px, 3fr)",
  }),
  column(
    "bytes",
    "found_bytes",
    "Bytes",
    "Of a leak: in each step. Of a program: what it reserves above that of most hosts",
    ({ bytes }) => bytes,
    { csv: "bytes" },
  ),
  column(
    "text",
    "found_file",
    "Open",
    "The recording that shows it; another program is compared with that of most hosts",
    ({ file }) => file,
    {
      csv: "file",
      track: "90px",
      cell: ({ usual, recording }) =>
        recording !== null && <CellLink>{usual === null ? "Over time" : "Compare"}</CellLink>,
    },
  ),
];

const SESSIONS: readonly Column<Session>[] = [
  column("text", "session", "Session", "Folder of the logdir", ({ name }) => name, {
    track: "minmax(240px, 2fr)",
  }),
  column("text", "session_began", "Began", "The time that its name states", sessionTime, {
    csv: "began",
    track: "160px",
  }),
  column("count", "session_hosts", "Hosts", "Number of hosts in it", ({ hosts }) => hosts, { csv: "hosts" }),
];

/** Findings about hosts, and the sessions that are joined. */
export function Hosts(props: FleetProps) {
  const { api, fleet } = props;
  const [error, setError] = useState<Error | null>(null);
  const { capture, rule, running } = fleet.meta;
  const findings = useMemo(() => (capture === null ? [] : findingsOf(capture)), [capture]);
  const open = ({ recording, usual }: Finding): void => {
    setError(null);
    if (recording !== null)
      openById(api, recording, usual).catch((reason: unknown) => setError(asError(reason)));
  };
  if (capture === null) return null;
  const file = capture.name.replaceAll("/", "_");
  return (
    <>
      <section class="fleet-hosts" aria-label="Hosts">
        <h2>Hosts</h2>
        {error !== null && <ErrorMessage error={error} />}
        <OtherFaults {...props} />
        {findings.length === 0 && !running && (
          <p class="muted" data-testid="no-findings">
            No missing or unreadable hosts, no leaks, and the same programs on all hosts.
          </p>
        )}
        {findings.length > 0 && (
          <ListTable
            {...{ open }}
            canOpen={({ recording }) => recording !== null}
            columns={FINDINGS}
            rows={findings}
            bytes={(row) => row.bytes}
            label="Findings about hosts"
            testid="fleet-findings"
            noun="finding"
            fileName={`${file}_hosts.csv`}
          />
        )}
      </section>
      {capture.sessions.length > 1 && (
        <section class="fleet-hosts" aria-label="Sessions">
          <h2>Joined sessions</h2>
          <p class="muted" data-testid="fleet-rule">
            Rule: {rule}.
          </p>
          <ListTable
            columns={SESSIONS}
            rows={capture.sessions}
            label="Joined sessions"
            testid="fleet-sessions"
            noun="session"
            fileName={`${file}_sessions.csv`}
          />
        </section>
      )}
    </>
  );
}
