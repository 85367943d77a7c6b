import type { JSX } from "preact";
import type { Api } from "../../payload/api";
import type { ComparedSide, Comparison } from "../../payload/generated/answers";
import type { ChangeCausesQuery } from "../../payload/generated/client";
import { useFetched } from "../data/use_fetched";
import { ErrorMessage } from "../widgets/message";

/** What the programmer or the compiler changed between the peaks of two programs, as `check --baseline` says it. */
export function Causes({ api, comparison }: { api: Api; comparison: Comparison }): JSX.Element | null {
  const query = causesQuery(comparison);
  const { value, error } = useFetched(query && JSON.stringify(query), (key, signal) =>
    api.changeCauses(JSON.parse(key) as ChangeCausesQuery, signal),
  );
  if (query === null) return null;
  return (
    <section aria-label="Causes" data-testid="causes" aria-busy={value === null && error === null}>
      <h2>Causes</h2>
      {error !== null && <ErrorMessage error={error} />}
      {value === null && error === null && <p class="muted">Looking for what changed in the programs…</p>}
      {value?.causes.length === 0 && (
        <p class="muted">
          No cause is known for what changed. The steps and arrays below are the differences.
        </p>
      )}
      {value !== null && (
        <ul class="causes">
          {value.causes.map(({ text }) => (
            <li key={text}>
              <Sentence text={text} />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** A sentence whose names are between backticks, set as code. */
function Sentence({ text }: { text: string }): JSX.Element {
  const parts = text.split("`");
  if (parts.length % 2 === 0) return <>{text}</>; // a name contains one
  return <>{parts.map((part, i) => (i % 2 === 1 ? <code key={i}>{part}</code> : part))}</>;
}

/** Return what to ask; null for other recordings than two programs, other moments than peaks, and equal sides. */
function causesQuery({ a, b, changes }: Comparison): ChangeCausesQuery | null {
  const compared = isPeakOfProgram(a) && isPeakOfProgram(b) && a.recording.id !== b.recording.id;
  const differ = Object.entries(changes).some(([change, { entries }]) => change !== "same" && entries > 0);
  return compared && differ ? { a: a.recording.id, b: b.recording.id } : null;
}

function isPeakOfProgram({ recording, position }: ComparedSide): boolean {
  return recording.kind === "program" && position === recording.peak_position;
}
