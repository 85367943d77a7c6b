import { formatBytes, formatCount, formatExact, formatShare, formatSigned } from "../../base/units";
import { CHANGE_LABELS, delta, entryName, type SelectedChange } from "../../layout/compare/changes";
import type { Api } from "../../payload/api";
import type {
  ComparedEntry,
  ComparedSide,
  Comparison,
  Details,
  WaterfallStep,
} from "../../payload/generated/answers";
import { capitalize, useTerms } from "../data/terms";
import { useFetched } from "../data/use_fetched";
import { openRecording } from "../state/tabs";
import { store } from "../state/view_state";
import { CallStack } from "../widgets/call_stack";
import { Drawer, Fact } from "../widgets/drawer";
import { Role } from "../widgets/labels";
import { ErrorMessage } from "../widgets/message";

interface Props {
  api: Api;
  comparison: Comparison;
  found: SelectedChange;
}

/** Selected change: its values in A and B, with links to both. */
export function ChangeDetails({ found, ...props }: Props) {
  return found.kind === "step" ? (
    <StepDetails {...props} step={found.step} entries={found.entries} />
  ) : (
    <EntryDetails {...props} entry={found.entry} />
  );
}

type Shared = Omit<Props, "found">;

function EntryDetails({ api, comparison, entry }: Shared & { entry: ComparedEntry }) {
  const terms = useTerms();
  return (
    <Drawer
      title={entry.site}
      label="Selected change"
      testid="change-details"
      onClose={() => store.set({ selected_change: "" })}
    >
      <dl class="facts">
        <Fact name="Change">
          <b>{formatSigned(delta(entry))}</b> {CHANGE_LABELS[entry.change]}
        </Fact>
        {entry.role !== 0 && (
          <Fact name="Role">
            <Role role={entry.role} />
          </Fact>
        )}
        <OptionalFact name={terms.op} text={entry.op} />
        <OptionalFact name={terms.op_name} text={entry.op_name} />
        <OptionalFact name="Source" text={entry.source} />
      </dl>
      {(["a", "b"] as const).map((name) => (
        <SideDetails
          {...{ api, name }}
          key={name}
          side={comparison[name]}
          row={entry[`row_${name}`]}
          bytes={entry[`bytes_${name}`]}
          allocations={entry[`allocations_${name}`]}
        />
      ))}
    </Drawer>
  );
}

/** Label and value; omitted without a value, as kinds of recordings differ in what they record. */
function OptionalFact({ name, text }: { name: string; text: string }) {
  return text === "" ? null : (
    <Fact name={name}>
      <code>{text}</code>
    </Fact>
  );
}

interface SideProps {
  api: Api;
  name: "a" | "b";
  side: ComparedSide;
  /** Details of its largest allocation there; null without one. */
  row: number | null;
  bytes: number;
  allocations: number;
}

function SideDetails({ api, name, side, row, bytes, allocations }: SideProps) {
  const { recording, position } = side;
  const terms = useTerms();
  const { value, error } = useFetched(row === null ? null : `${recording.id} ${row}`, (_, signal) =>
    api.details({ id: recording.id, row: row ?? 0 }, signal),
  );
  const open = (): void => {
    const at = recording.axis === "INSTANT" || position === recording.peak_position ? null : position;
    openRecording(recording, { position: at, selected: row });
  };
  return (
    <section data-testid={`change-in-${name}`}>
      <h3>In {name.toUpperCase()}</h3>
      {row === null ? (
        <p class="muted">Not there.</p>
      ) : (
        <>
          <dl class="facts">
            <Fact name="Size">
              <b>{formatBytes(bytes)}</b> <span class="muted">{formatExact(bytes)}</span>
              {allocations > 1 && <p class="muted">{`in ${formatCount(allocations)} ${terms.items}`}</p>}
            </Fact>
            {value !== null && <LargestAllocation details={value} alone={allocations === 1} />}
          </dl>
          <button class="link" data-testid={`open-in-${name}`} onClick={open}>
            Open in {recording.title}
          </button>
          {error !== null && <ErrorMessage error={error} />}
          {value === null && error === null && <p class="muted">Reading the stack…</p>}
          {value !== null && <CallStack frames={value.stack} />}
        </>
      )}
    </section>
  );
}

/** Allocation of the call stack. */
function LargestAllocation({ details, alone }: { details: Details; alone: boolean }) {
  const terms = useTerms();
  const { size_bytes: size, requested_bytes: requested, shape, dtype, name } = details;
  return (
    <>
      {!alone && <Fact name="The largest">{formatBytes(size)}</Fact>}
      {requested !== size && <Fact name={capitalize(terms.requested)}>{formatBytes(requested)}</Fact>}
      <OptionalFact name="Name" text={name} />
      <OptionalFact name="Shape" text={shape.startsWith(dtype) ? shape : `${dtype}${shape}`} />
    </>
  );
}

/** Changes listed without scrolling; the table has all. */
const MAX_LISTED = 15;

function StepDetails(props: Shared & { step: WaterfallStep; entries: ComparedEntry[] }) {
  const { comparison, step, entries } = props;
  const { a, b } = comparison;
  const change = step.bytes_b - step.bytes_a;
  const whole = b.bytes - a.bytes;
  const changed = entries.filter((entry) => delta(entry) !== 0);
  return (
    <Drawer
      title={step.label}
      label="Selected step"
      testid="change-details"
      onClose={() => store.set({ selected_change: "" })}
    >
      <dl class="facts">
        <Fact name="Change">
          <b>{formatSigned(change)}</b>
          {whole !== 0 && change / whole > 0 && (
            <span class="muted">{` ${formatShare(change / whole, 1)} of the whole change`}</span>
          )}
        </Fact>
        <Fact name="In A">
          {formatBytes(step.bytes_a)} <span class="muted">{formatExact(step.bytes_a)}</span>
        </Fact>
        <Fact name="In B">
          {formatBytes(step.bytes_b)} <span class="muted">{formatExact(step.bytes_b)}</span>
        </Fact>
      </dl>
      <section>
        <h3>What changed in it</h3>
        {changed.length === 0 && <p class="muted">Nothing that is listed below.</p>}
        <ul class="sharers" data-testid="step-entries">
          {changed.slice(0, MAX_LISTED).map((entry) => (
            <li key={entryName(entry)}>
              <button class="link" onClick={() => store.set({ selected_change: entryName(entry) })}>
                {entry.site}
              </button>
              <span>{formatSigned(delta(entry))}</span>
              <span class="muted">{CHANGE_LABELS[entry.change]}</span>
            </li>
          ))}
        </ul>
        {changed.length > MAX_LISTED && (
          <p class="muted">{`and ${formatCount(changed.length - MAX_LISTED)} smaller ones, in the table`}</p>
        )}
      </section>
    </Drawer>
  );
}
