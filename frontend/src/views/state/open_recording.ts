import type { Summary } from "../../payload/generated/answers";
import { NEW_RECORDING, store, type Tab, type ViewState } from "./view_state";

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
