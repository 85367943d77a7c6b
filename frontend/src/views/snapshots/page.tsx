import type { JSX } from "preact";
import { RecordingPage } from "../recording/recording_page";
import { DeviceProfilePage, type SnapshotProps } from "./device_profile";
import { OomPage } from "./oom_page";

/** Page of memory at one moment, by the kind of recording. */
export function SnapshotPage({ summary, snapshots, ...shared }: SnapshotProps): JSX.Element {
  if (summary.kind === "oom") return <OomPage {...shared} summary={summary} />;
  if (summary.kind === "device_profile") return <DeviceProfilePage {...shared} {...{ summary, snapshots }} />;
  return <RecordingPage {...shared} tab="snapshots" allocations={summary.allocations} id={summary.id} />;
}
