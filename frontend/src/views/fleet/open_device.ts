import type { Api } from "../../payload/api";
import { placeOfId } from "../../payload/choose_recording";
import { fileHost, type FleetDevices } from "../../payload/responses/fleet";
import { openComparison, openRecording } from "../state/tabs";
import { store } from "../state/view_state";

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
  openComparison(other, devices.id[row], { ...placeOf(devices, row), fleet_ticked: "" });
}

/** Open the recording with an id; compare it with that of another id, if one is given. */
export async function openById(api: Api, id: string, other: string | null): Promise<void> {
  const place = placeOfId(await api.runs(null), id);
  if (other === null) await openAt(api, id, place);
  else openComparison(other, id, { ...place, fleet_ticked: "" });
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
