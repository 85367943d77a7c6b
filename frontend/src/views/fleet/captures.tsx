import { formatCount, formatCounted } from "../../base/units";
import type { CaptureName } from "../../payload/generated/answers";
import { store } from "../state/view_state";
import { type Column, column } from "../tables/columns";
import { ListTable } from "../tables/table";
import { type FleetProps, sessionTime } from "./section";

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
export function OtherFaults({ fleet }: FleetProps) {
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
