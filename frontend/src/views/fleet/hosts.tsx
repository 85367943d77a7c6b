import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { formatBytes, formatCount, formatExact } from "../../base/units";
import type { Finding, FindingKind } from "../../layout/fleet/findings";
import { findingsOf } from "../../layout/fleet/findings";
import type { Session } from "../../payload/generated/answers";
import { ErrorMessage } from "../widgets/message";
import { OtherFaults } from "./captures";
import type { ListColumn } from "./list_table";
import { dateText, ListTable, numberColumn, OpenLink, textColumn } from "./list_table";
import { openById } from "./open_device";
import type { FleetProps } from "./section";

const KINDS: Record<FindingKind, string> = {
  missing: "Missing",
  unreadable: "Unreadable",
  oom: "Out of memory",
  program: "Another program",
  leak: "Leak",
};

const count = (value: number): string => formatCount(value);

const FINDINGS: readonly ListColumn<Finding>[] = [
  textColumn("found", "Finding", "What was found", "116px", "finding", ({ kind }) => KINDS[kind]),
  textColumn(
    "found_hosts",
    "Hosts",
    "The hosts that it is about",
    "minmax(150px, .4fr)",
    "hosts",
    (row) => row.hosts,
  ),
  numberColumn("found_count", "Count", "Number of hosts", "56px", "host_count", (row) => row.count, count),
  textColumn(
    "found_text",
    "Details",
    "Reason and remedy, or what differs",
    "minmax(300px, 3fr)",
    "details",
    (row) => row.text,
  ),
  numberColumn(
    "found_bytes",
    "Bytes",
    "Of a leak: in each step. Of a program: what it reserves above that of most hosts",
    "80px",
    "bytes",
    (row) => row.bytes,
    (bytes) => <span title={formatExact(bytes)}>{formatBytes(bytes)}</span>,
  ),
  {
    ...textColumn<Finding>(
      "found_file",
      "Open",
      "The recording that shows it; another program is compared with that of most hosts",
      "90px",
      "file",
      (row) => row.file,
    ),
    cell: ({ usual, recording }) =>
      recording === null ? "" : <OpenLink text={usual === null ? "Over time" : "Compare"} />,
  },
];

const SESSIONS: readonly ListColumn<Session>[] = [
  textColumn(
    "session",
    "Session",
    "Folder of the logdir",
    "minmax(240px, 2fr)",
    "session",
    (row) => row.name,
  ),
  textColumn("session_began", "Began", "The time that its name states", "160px", "began", (row) =>
    dateText(row.began),
  ),
  numberColumn("session_hosts", "Hosts", "Number of hosts in it", "80px", "hosts", (row) => row.hosts, count),
];

/** Findings about hosts, and the sessions that are joined. */
export function Hosts(props: FleetProps): JSX.Element | null {
  const { api, fleet, store } = props;
  const [error, setError] = useState<Error | null>(null);
  const { capture, rule, running } = fleet.meta;
  const findings = useMemo(() => (capture === null ? [] : findingsOf(capture)), [capture]);
  const open = ({ recording, usual }: Finding): void => {
    setError(null);
    if (recording !== null)
      openById(api, store, recording, usual).catch((reason: unknown) =>
        setError(reason instanceof Error ? reason : new Error(String(reason))),
      );
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
            {...{ store, open }}
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
            {...{ store }}
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
