import type { JSX } from "preact";
import type { Store } from "../../base/store";
import { formatBytes, formatCount, formatExact } from "../../base/units";
import type { OverviewRow, ResidentProgram, CoResidency } from "../../payload/generated/answers";
import { Middle } from "../widgets/middle";
import type { ViewState } from "../state/view_state";
import { openRecording } from "../state/open_recording";

interface Props {
  place: CoResidency;
  /** Hosts with equal programs in this memory. */
  hosts: readonly string[];
  rows: readonly OverviewRow[];
  store: Store<ViewState>;
}

/** Programs in the chart; the sums include all of them. */
const MAX_LISTED = 12;

/** Programs that shared one memory: persistent bytes of each, and temporary bytes while it runs. */
export function CoResidency({ place, hosts, rows, store }: Props): JSX.Element {
  const listed = place.programs.slice(0, MAX_LISTED);
  const largest = Math.max(...listed.map((program) => program.held_bytes + program.temporary_bytes), 1);
  const open = (id: string): void => {
    const row = rows.find((candidate) => candidate.id === id);
    if (row !== undefined) openRecording(store, row);
  };
  const on =
    hosts.length > 1
      ? ` on each of ${formatCount(hosts.length)} equal hosts`
      : place.host === ""
        ? ""
        : ` on ${place.host}`;
  return (
    <section
      class="co-residency"
      data-testid="co-residency"
      aria-label={`Programs sharing ${place.memory}${on}`}
    >
      <header class="section-head">
        <h2 title={hosts.join("\n")}>{`Programs sharing ${place.memory}${on}`}</h2>
        <ul class="co-residency-key" aria-label="Parts of the bars">
          {PARTS.map(([name, label]) => (
            <li key={name}>
              <i class={name} /> {label}
            </li>
          ))}
        </ul>
      </header>
      <p class="muted">{place.sentence}</p>
      <ol>
        {listed.map((program) => (
          <li key={program.id}>
            <button class="link" title={program.title} onClick={() => open(program.id)}>
              <Middle text={program.title} />
            </button>
            <Bar program={program} whole={largest} />
            <span class="numeric">{describeProgram(program)}</span>
          </li>
        ))}
      </ol>
      {place.programs.length > MAX_LISTED && (
        <p class="muted">{`and ${formatCount(place.programs.length - MAX_LISTED)} smaller ones`}</p>
      )}
    </section>
  );
}

const PARTS = [
  ["held", "persistent"],
  ["again", "shared with a larger program"],
  ["temporary", "temporary"],
] as const;

function Bar({ program, whole: largest }: { program: ResidentProgram; whole: number }): JSX.Element {
  const { held_bytes: persistent, again_bytes: shared, temporary_bytes: temporary } = program;
  const bytes = { held: persistent - shared, again: shared, temporary };
  return (
    <div class="co-residency-bar" aria-hidden="true">
      {PARTS.map(([name]) => (
        <i
          key={name}
          class={name}
          style={{ width: `${(100 * bytes[name]) / largest}%` }}
          title={formatExact(bytes[name])}
        />
      ))}
    </div>
  );
}

function describeProgram({
  held_bytes: persistent,
  temporary_bytes: temporary,
  runs,
}: ResidentProgram): string {
  const ran = runs === null ? "" : runs === 1 ? ", ran once" : `, ran ${formatCount(runs)} times`;
  return `${formatBytes(persistent)} persistent, ${formatBytes(temporary)} temporary${ran}`;
}
