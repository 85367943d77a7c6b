import type { JSX } from "preact";
import type { Store } from "../../base/store";
import type { Api } from "../../payload/api";
import type { Problem } from "../../payload/generated/answers";
import type { Summary } from "../../payload/generated/answers";
import { RecordingPage } from "../recording/recording_page";
import type { OnPageState } from "../data/use_recording";
import type { ViewState } from "../state/view_state";
import { DeviceProfilePage } from "./device_profile";
import { OomPage } from "./oom_page";

interface Props {
  api: Api;
  summary: Summary;
  /** Number of snapshots in the run. */
  snapshots: number;
  problems: Problem[];
  store: Store<ViewState>;
  dark: boolean;
  onState: OnPageState;
}

/** Page of memory at one moment, by the kind of recording. */
export function SnapshotPage({ summary, snapshots, ...shared }: Props): JSX.Element {
  if (summary.kind === "oom") return <OomPage {...shared} summary={summary} />;
  if (summary.kind === "device_profile") return <DeviceProfilePage {...shared} {...{ summary, snapshots }} />;
  return <RecordingPage {...shared} tab="snapshots" allocations={summary.allocations} id={summary.id} />;
}
