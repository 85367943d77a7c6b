import type { Api } from "../../payload/api";
import { placeOfId } from "../../payload/choose_recording";
import { fileHost, type FleetDevices } from "../../payload/responses/fleet";
import { openRecording } from "../state/tabs";
import { NEW_COMPARISON, NEW_RECORDING, store } from "../state/view_state";

/** A recording's run, and the host of its file. */
interface Place {
  run: string;
  host: string;
}

/** Open the recording of a device. */
export async function openDevice(api: Api, devices: FleetDevices, row: number): Promise<void> {
  store.set({ fleet_device: devices.id[row] });
  await openAt(api, devices.id[row], placeOf(devices, row));
}

/** Compare a device with that of a recording's id. */
export function compareDevice(devices: FleetDevices, row: number, other: string): void {
  compareAt(other, devices.id[row], placeOf(devices, row));
}

/** Open the recording with an id; compare it with that of another id, if one is given. */
export async function openById(api: Api, id: string, other: string | null): Promise<void> {
  const place = placeOfId(await api.runs(null), id);
  if (other === null) await openAt(api, id, place);
  else compareAt(other, id, place);
}

function placeOf(devices: FleetDevices, row: number): Place {
  return { run: devices.run[row], host: fileHost(devices, row) };
}

async function openAt(api: Api, id: string, place: Place): Promise<void> {
  const { recordings } = await api.recordings({ ...place }, null);
  const found = recordings.find((recording) => recording.id === id);
  if (found === undefined)
    throw new Error(`The file of ${place.host} has changed: it has no recording with the id ${id}`);
  openRecording(found);
}

/** Compare two recordings, of which the second is at a place. */
function compareAt(a: string, b: string, place: Place): void {
  store.set({
    tab: "compare",
    ...place,
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
