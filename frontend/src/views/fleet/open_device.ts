import type { Store } from "../../base/store";
import type { Api } from "../../payload/api";
import type { FleetDevices } from "../../payload/responses/fleet";
import { fileHost } from "../../payload/responses/fleet";
import { openRecording } from "../state/open_recording";
import type { ViewState } from "../state/view_state";
import { NEW_COMPARISON, NEW_RECORDING } from "../state/view_state";

/** Open the recording of a device. */
export async function openDevice(
  api: Api,
  store: Store<ViewState>,
  devices: FleetDevices,
  row: number,
): Promise<void> {
  store.set({ fleet_device: devices.id[row] });
  await openById(api, store, devices.id[row], [devices.run[row], fileHost(devices, row)]);
}

/** Compare a device with that of a recording's id. */
export function compareDevice(
  store: Store<ViewState>,
  devices: FleetDevices,
  row: number,
  other: string,
): void {
  compareIds(store, other, devices.id[row], [devices.run[row], fileHost(devices, row)]);
}

/** Open the recording with an id, which begins with its run and the host of its file. */
export async function openById(
  api: Api,
  store: Store<ViewState>,
  id: string,
  [run, host]: readonly string[] = id.split("|"),
): Promise<void> {
  const { recordings } = await api.recordings({ run, host }, null);
  const found = recordings.find((recording) => recording.id === id);
  if (found === undefined)
    throw new Error(`The file of ${host} has changed: it has no recording with the id ${id}`);
  openRecording(store, found);
}

/** Compare two recordings by their ids, of which the second begins with its run and the host of its file. */
export function compareIds(
  store: Store<ViewState>,
  a: string,
  b: string,
  [run, host]: readonly string[] = b.split("|"),
): void {
  store.set({
    tab: "compare",
    run,
    host,
    search: "",
    size_filter: "",
    sort: "",
    fleet_ticked: "",
    ...NEW_RECORDING,
    ...NEW_COMPARISON,
    a,
    b,
  });
}
