import { useMemo } from "preact/hooks";
import { formatCount, formatCounted } from "../../base/units";
import { type Finding, type FindingKind, findingsOf } from "../../layout/fleet/devices";
import type { CaptureName, Session } from "../../payload/generated/answers";
import { useAttempt } from "../data/use_fetched";
import { store } from "../state/view_state";
import { CellLink, type Column, column } from "../tables/columns";
import { ListTable } from "../tables/table";
import { ErrorMessage } from "../widgets/message";
import { type FleetProps, openById, sessionTime } from "./section";

const CAPTURES: readonly Column<CaptureName>[] = [
  column("text", "capture", "Capture", "Its first session", ({ name }) => name, {
    track: "minmax(240px, 1fr)",
  }),
  column("text", "capture_began", "Began", "The time that its name states", sessionTime, {
    csv: "began",
    track: "160px",
  }),
  column("count", "capture_sessions", "Sessions", "Number of sessions", ({ sessions }) => sessions, {
    csv: "sessions",
  }),
  column("count", "capture_hosts", "Hosts", "Number of hosts with a file", ({ hosts }) => hosts, {
    csv: "hosts",
    track: "70px",
  }),
  column(
    "count",
    "capture_known",
    "Files read",
    "Files that have been read before; outliers and other programs are known if all have",
    (row) => row.known_files,
    {
      csv: "files_read",
      track: "110px",
      cell: ({ known_files: known, files }) => `${formatCount(known)} of ${formatCount(files)}`,
    },
  ),
  column(
    "text",
    "capture_faults",
    "Known faults",
    "Faults that are known without reading it",
    ({ faults }) => faults,
    { csv: "faults", track: "minmax(280px, 2fr)" },
  ),
];

const MAX_NAMED = 3;

/** Other captures with known faults, which a healthy one must not hide; nothing where there are none. */
function OtherFaults({ fleet }: FleetProps) {
  const { capture, captures } = fleet.meta;
  const faulty = captures.filter(({ name, faults }) => faults !== "" && name !== capture?.name);
  if (faulty.length === 0) return null;
  const more = faulty.length - MAX_NAMED;
  return (
    <ul class="fleet-other-faults" data-testid="fleet-other-faults">
      {faulty.slice(0, MAX_NAMED).map(({ name, faults }) => (
        <li key={name}>
          Capture{" "}
          <button class="link" onClick={() => store.set({ run: name, ...NEW_FLEET })}>
            {name}
          </button>
          : {faults}
        </li>
      ))}
      {more > 0 && <li>and {formatCounted(more, "other capture")} with known faults, below</li>}
    </ul>
  );
}

/** Initial values of the fields that belong to one capture. */
const NEW_FLEET = { fleet_device: "", fleet_peaks: null, fleet_ticked: "" } as const;

/** All captures with their known faults, of which one can be chosen; nothing where there is one only. */
export function Captures({ fleet }: FleetProps) {
  const { capture, captures } = fleet.meta;
  if (captures.length < 2) return null;
  return (
    <section class="fleet-hosts" aria-label="Captures">
      <h2>Captures</h2>
      <p class="muted">Choose the capture that this tab shows. The newest is the first.</p>
      <ListTable
        columns={CAPTURES}
        rows={captures}
        label="Captures"
        testid="fleet-captures"
        noun="capture"
        fileName="captures.csv"
        isSelected={({ name }) => name === capture?.name}
        open={({ name }) => store.set({ run: name, ...NEW_FLEET })}
      />
    </section>
  );
}

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
  const [error, attempt] = useAttempt();
  const { capture, rule, running } = fleet.meta;
  const findings = useMemo(() => (capture === null ? [] : findingsOf(capture)), [capture]);
  const open = ({ recording, usual }: Finding): void => {
    if (recording !== null) attempt(openById(api, recording, usual));
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
            open={open}
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
