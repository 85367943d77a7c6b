import type { Summary } from "../../payload/generated/answers";
import { isInXprof } from "../browser/host_window";
import { NEW_COMPARISON, NEW_RECORDING, store, type Tab, type ViewState } from "./view_state";

/** The tab for each kind of axis. */
export const TAB_OF_AXIS: Record<string, Tab> = {
  PROGRAM_ORDER: "memory_viewer",
  TIME: "memory_profile",
  INSTANT: "snapshots",
};

/** Return the part of the state that names a recording. */
export function placeOfRecording(
  recording: Summary,
): Pick<ViewState, "tab" | "run" | "host" | "module" | "space"> {
  return {
    tab: TAB_OF_AXIS[recording.axis] ?? "memory_viewer",
    run: recording.run,
    host: recording.host,
    module: recording.title,
    space: recording.memory,
  };
}

/** Open a recording at a position, in the tab of its kind. */
export function openRecording(
  recording: Summary,
  at: Partial<Pick<ViewState, "position" | "selected">> = {},
): void {
  store.set({
    ...placeOfRecording(recording),
    search: "",
    timeline_only: false,
    ...NEW_RECORDING,
    ...at,
  });
}

/** Compare two recordings by their ids. `place`: of the second one, with what else changes. */
export function openComparison(a: string, b: string, place: Partial<ViewState>): void {
  const filters = { search: "", size_filter: "", sort: "" };
  store.set({ tab: "compare", ...place, ...filters, ...NEW_RECORDING, ...NEW_COMPARISON, a, b });
}

const NAMES: Record<Tab, string> = {
  overview: "Overview",
  memory_viewer: "Program",
  memory_profile: "Over time",
  snapshots: "Device profile",
  compare: "Compare",
  fit: "Fit",
  fleet: "Fleet",
};

/** Names of the tools in whose place XProf shows these tabs. */
const XPROF_NAMES: Partial<Record<Tab, string>> = {
  memory_viewer: "Memory Viewer",
  memory_profile: "Memory Profile",
};

const ABOUT: Record<Tab, string> = {
  overview: "Every program and memory of the run, the largest share of its limit first",
  memory_viewer: "Memory of a compiled program, in program order",
  memory_profile: "Memory of an allocator over time: allocator events, and PyTorch snapshots",
  snapshots: "Memory at one moment: device memory profiles, and out-of-memory errors",
  compare: "Changes between two recordings or two moments",
  fleet:
    "Devices of all hosts: the worst one with its cause, outliers, missing hosts, and the trend over days",
  fit: "Candidates of a fit: which programs fit on which accelerators, and the largest batch",
};

/** Return whether a tab shows one recording. */
export function isOfOneRecording(tab: Tab): boolean {
  return Object.values(TAB_OF_AXIS).includes(tab);
}

/** Return the recordings that a tab shows; null for a tab that shows more than recordings of one kind. */
export function recordingsOf(tab: Tab, recordings: readonly Summary[]): readonly Summary[] | null {
  if (!isOfOneRecording(tab)) return null;
  return recordings.filter(({ axis }) => TAB_OF_AXIS[axis] === tab);
}

/** Return the name of a tab, by what the run has in it. In XProf two tabs have the names of XProf's tools. */
export function tabName(tab: Tab, recordings: readonly Summary[] | null, inXprof = isInXprof()): string {
  if (tab === "snapshots") {
    const kinds = new Set(recordingsOf(tab, recordings ?? [])?.map(({ kind }) => kind));
    if (kinds.has("oom")) return kinds.size > 1 ? "Device profile, out of memory" : "Out of memory";
  }
  return (inXprof ? XPROF_NAMES[tab] : undefined) ?? NAMES[tab];
}

/** Return the explanation of a tab, with the name that it has in XProf. */
export function aboutTab(tab: Tab): string {
  const name = XPROF_NAMES[tab];
  return name === undefined ? ABOUT[tab] : `${ABOUT[tab]} (${name} in XProf)`;
}
