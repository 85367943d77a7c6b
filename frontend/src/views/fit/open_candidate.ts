import type { Store } from "../../base/store";
import type { Api } from "../../payload/api";
import type { FitCandidate, Summary } from "../../payload/generated/answers";
import type { Signal } from "../../payload/request";
import { openRecording } from "../state/open_recording";
import type { ViewState } from "../state/view_state";
import { NEW_COMPARISON, NEW_RECORDING } from "../state/view_state";

/** Open the compiled program of a candidate. */
export async function openCandidate(
  api: Api,
  store: Store<ViewState>,
  candidate: FitCandidate,
  signal: Signal = null,
): Promise<void> {
  openRecording(store, await programOf(api, candidate, signal));
}

/** Compare the programs of two candidates. */
export async function compareCandidates(
  api: Api,
  store: Store<ViewState>,
  pair: readonly [FitCandidate, FitCandidate],
  signal: Signal = null,
): Promise<void> {
  const [a, b] = await Promise.all(pair.map((each) => programOf(api, each, signal)));
  store.set({
    tab: "compare",
    run: b.run,
    search: "",
    size_filter: "",
    sort: "",
    fit_ticked: "",
    ...NEW_RECORDING,
    ...NEW_COMPARISON,
    a: a.id,
    b: b.id,
  });
}

/** Return the program that the candidate's figures are of: a dump may have smaller ones, which compute constants. */
async function programOf(api: Api, candidate: FitCandidate, signal: Signal): Promise<Summary> {
  const { recordings } = await api.recordings({ run: candidate.run }, signal);
  const programs = recordings.filter(({ kind }) => kind === "program");
  const found = programs.find(({ peak_bytes: peak }) => peak === candidate.peak_bytes) ?? programs.at(0);
  if (found === undefined) throw new Error(`The run ${candidate.run} has no program`);
  return found;
}
