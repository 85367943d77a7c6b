import { formatBytes, formatExact, formatLeft, formatShare } from "../../base/units";
import { stackedRoles } from "../../layout/fit_chart";
import type { FitCandidate, FitStep } from "../../payload/generated/answers";
import { leftOf, recomputedText, reservedText, STATE_TEXT, stateOf } from "../../payload/responses/fit";
import { store } from "../state/view_state";
import { Drawer } from "../widgets/drawer";
import { Role } from "../widgets/role";
import type { CandidateActions } from "./candidate";

interface Props {
  step: FitStep;
  candidate: FitCandidate;
  actions: CandidateActions;
}

/** Everything that the record of a candidate has, with the traceback of the user's code in full. */
export function CandidateDetails({ step, candidate, actions }: Props) {
  const { roles, peak_bytes: peak, parts, error, traceback, versions } = candidate;
  return (
    <Drawer
      title={titleOf(step, candidate)}
      label="Candidate"
      testid="fit-candidate"
      onClose={() => store.set({ fit_candidate: "" })}
    >
      {actions.isCompiled(candidate) && (
        <button data-testid="open-candidate" onClick={() => actions.open(candidate)}>
          Open the program
        </button>
      )}
      {error !== null && (
        <p class="fit-error" role="alert">
          {error}
        </p>
      )}
      {traceback !== null && (
        <>
          <h3>Traceback</h3>
          <pre class="fit-traceback" data-testid="traceback" tabindex={0}>
            {traceback}
          </pre>
        </>
      )}
      <dl class="facts">
        <Fact name="Fits" text={STATE_TEXT[stateOf(candidate)]} />
        <Bytes name="Reserved" bytes={candidate.reserved_bytes} />
        <Bytes name="Peak" bytes={peak} />
        <Bytes name="Limit" bytes={candidate.limit_bytes} />
        <Fact name="Left" text={textOr(leftOf(candidate), formatLeft)} />
        <Fact name="Recomputed" text={candidate.reserved_bytes === null ? "" : recomputedText(candidate)} />
        <Fact name="Compiled in" text={`${candidate.seconds.toFixed(1)} s`} />
        <Fact name="Target" text={candidate.target} />
        {step.searched !== "" && <Fact name={step.searched} text={String(candidate.value)} />}
        {Object.entries(candidate.knobs).map(([name, value]) => (
          <Fact key={name} name={name} text={String(value)} />
        ))}
        <Fact name="Changes" text={candidate.change} />
        {Object.entries(versions).map(([name, version]) => (
          <Fact key={name} name={name} text={version} />
        ))}
        <Fact name="Run" text={candidate.run} />
      </dl>
      {peak !== null && roles.length > 0 && (
        <>
          <h3>Peak by role</h3>
          <ul class="fit-roles">
            {stackedRoles(roles)
              .reverse()
              .map(({ role, bytes }) => (
                <li key={role}>
                  <Role role={role} />
                  <BytesOfPeak bytes={bytes} peak={peak} />
                </li>
              ))}
          </ul>
        </>
      )}
      {peak !== null && parts.length > 0 && (
        <>
          <h3>Largest parts of the peak</h3>
          <ul class="fit-roles">
            {parts.map(({ name, bytes }) => (
              <li key={name}>
                <span title={name}>{name}</span>
                <BytesOfPeak bytes={bytes} peak={peak} />
              </li>
            ))}
          </ul>
        </>
      )}
      {candidate.caveats.map((text) => (
        <p key={text} class="muted">
          {text}
        </p>
      ))}
    </Drawer>
  );
}

function BytesOfPeak({ bytes, peak }: { bytes: number; peak: number }) {
  return (
    <>
      <span class="numeric" title={formatExact(bytes)}>
        {formatBytes(bytes)}
      </span>
      <span class="numeric muted">{formatShare(bytes, peak)}</span>
    </>
  );
}

function titleOf({ searched }: FitStep, { target, value, knobs, change }: FitCandidate): string {
  const named = Object.entries(searched === "" ? knobs : { [searched]: value, ...knobs });
  return [target, ...named.map(([name, each]) => `${name}=${String(each)}`), change]
    .filter((text) => text !== "")
    .join(", ");
}

function textOr<T>(value: T | null, format: (value: T) => string): string {
  return value === null ? "" : format(value);
}

function Bytes({ name, bytes }: { name: string; bytes: number | null }) {
  return bytes === null ? null : <Fact name={name} text={reservedText(bytes)} about={formatExact(bytes)} />;
}

function Fact({ name, text, about }: { name: string; text: string; about?: string }) {
  if (text === "") return null;
  return (
    <>
      <dt>{name}</dt>
      <dd title={about ?? ""}>{text}</dd>
    </>
  );
}
