import { formatBytes, formatExact, formatLeft, formatShare } from "../../base/units";
import { stackedRoles } from "../../layout/fit/chart";
import type { Api } from "../../payload/api";
import type { FitCandidate, FitStep, Summary } from "../../payload/generated/answers";
import {
  knobText,
  leftOf,
  rateText,
  recomputedText,
  reservedText,
  sharesText,
  STATE_TEXT,
  stateOf,
  stepTimeText,
} from "../../payload/responses/fit";
import { openComparison, openRecording } from "../state/tabs";
import { store } from "../state/view_state";
import { Drawer, Fact } from "../widgets/drawer";
import { Role } from "../widgets/labels";

/** What charts and tables do with a candidate. */
export interface CandidateActions {
  open: (candidate: FitCandidate) => void;
  /** Null where nothing can be compared, as in a report. */
  tick: ((candidate: FitCandidate) => void) | null;
  /** Its program is in the logdir. */
  isCompiled: (candidate: FitCandidate) => boolean;
}

/** What charts and tables of a step share. */
export interface SectionProps {
  step: FitStep;
  actions: CandidateActions;
}

/** Name a candidate: its value, target, knobs and changes. */
export function candidateName(step: FitStep, { target, value, knobs, change }: FitCandidate): string {
  const searched = step.searched === "" ? [] : [knobText([step.searched, value])];
  return [...searched, ...Object.entries(knobs).map(knobText), change, target].filter(Boolean).join(", ");
}

/** Describe what compiling a candidate gave. */
export function candidateSentence(candidate: FitCandidate): string {
  const { reserved_bytes: reserved, rematerialized, error } = candidate;
  if (reserved === null) return error ?? "No program";
  const left = leftOf(candidate);
  const fits =
    left === null ? "" : left < 0 ? `does not fit, ${formatLeft(left)}` : `${formatLeft(left)} left`;
  const room = error === null ? fits : `does not fit: ${error}`;
  const again = rematerialized > 0 ? `the compiler recomputes ${recomputedText(candidate)}` : "";
  return [`reserves ${reservedText(reserved)}`, room, again].filter(Boolean).join("; ");
}

export function CandidateTooltip(props: { step: FitStep; candidate: FitCandidate; opens: boolean }) {
  const { step, candidate, opens } = props;
  const { peak_bytes: peak } = candidate;
  return (
    <>
      <b>{candidateName(step, candidate)}</b>
      <span class={stateOf(candidate) === "fits" || stateOf(candidate) === "recomputes" ? "" : "fit-bad"}>
        {candidateSentence(candidate)}
      </span>
      {peak !== null && <span>peak {formatBytes(peak)}</span>}
      <span class="muted">{opens ? "Click to open its program" : "Click for details"}</span>
    </>
  );
}

/** Open the compiled program of a candidate. */
export async function openCandidate(api: Api, candidate: FitCandidate): Promise<void> {
  openRecording(await programOf(api, candidate));
}

/** Compare the programs of two candidates. */
export async function compareCandidates(api: Api, ...pair: [FitCandidate, FitCandidate]): Promise<void> {
  const [a, b] = await Promise.all(pair.map((each) => programOf(api, each)));
  openComparison(a.id, b.id, { run: b.run, fit_ticked: "" });
}

/** Return the program that the candidate's figures are of: a dump may have smaller ones, which compute constants. */
async function programOf(api: Api, candidate: FitCandidate): Promise<Summary> {
  const { recordings } = await api.recordings({ run: candidate.run }, null);
  const programs = recordings.filter(({ kind }) => kind === "program");
  const found = programs.find(({ peak_bytes: peak }) => peak === candidate.peak_bytes) ?? programs.at(0);
  if (found === undefined) throw new Error(`The run ${candidate.run} has no program`);
  return found;
}

/** Everything that the record of a candidate has, with the traceback of the user's code in full. */
export function CandidateDetails(props: SectionProps & { candidate: FitCandidate }) {
  const { step, candidate, actions } = props;
  const { roles, peak_bytes: peak, parts, error, traceback, versions } = candidate;
  const left = leftOf(candidate);
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
        <Fact name="Fits">{STATE_TEXT[stateOf(candidate)]}</Fact>
        <Bytes name="Reserved" bytes={candidate.reserved_bytes} />
        <Bytes name="Peak" bytes={peak} />
        <Bytes name="Limit" bytes={candidate.limit_bytes} />
        <Fact name="Left">{left === null ? "" : formatLeft(left)}</Fact>
        <Fact name="Recomputed">{candidate.reserved_bytes === null ? "" : recomputedText(candidate)}</Fact>
        {candidate.step_seconds > 0 && (
          <>
            <Fact name="Step (est.)">{stepTimeText(candidate)}</Fact>
            <Fact name={`${step.item}/s (est.)`}>{rateText(candidate.items_per_second)}</Fact>
            <Fact name="Time bound by">{sharesText(candidate.bound_seconds, candidate.step_seconds)}</Fact>
            <Fact name="Time spent on">{sharesText(candidate.work_seconds, candidate.step_seconds)}</Fact>
          </>
        )}
        <Fact name="Compiled in">{`${candidate.seconds.toFixed(1)} s`}</Fact>
        <Fact name="Target">{candidate.target}</Fact>
        {step.searched !== "" && <Fact name={step.searched}>{String(candidate.value)}</Fact>}
        {Object.entries(candidate.knobs).map(([name, value]) => (
          <Fact key={name} name={name}>
            {String(value)}
          </Fact>
        ))}
        <Fact name="Changes">{candidate.change}</Fact>
        {Object.entries(versions).map(([name, version]) => (
          <Fact key={name} name={name}>
            {version}
          </Fact>
        ))}
        <Fact name="Run">{candidate.run}</Fact>
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

function Bytes({ name, bytes }: { name: string; bytes: number | null }) {
  return bytes === null ? null : (
    <Fact name={name} about={formatExact(bytes)}>
      {reservedText(bytes)}
    </Fact>
  );
}
