import { useEffect, useRef, useState } from "preact/hooks";
import { asError } from "../../base/errors";
import { formatCount, formatCounted } from "../../base/units";
import type { Api } from "../../payload/api";
import { placeOfId } from "../../payload/choose_recording";
import type { FleetMemory, FleetMeta, Listing, Runs } from "../../payload/generated/answers";
import { fileHost, type Fleet, type FleetDevices } from "../../payload/responses/fleet";
import type { Fetched } from "../data/use_fetched";
import { openComparison, openRecording } from "../state/tabs";
import { store } from "../state/view_state";

/** What the parts of the Fleet tab share. */
export interface FleetProps {
  api: Api;
  fleet: Fleet;
  /** The memory whose devices are shown. */
  memory: string;
}

/** What the parts about the devices of one memory share. */
export interface DevicesProps extends FleetProps {
  found: FleetMemory;
  /** Rows of the devices with the memory. */
  rows: Uint32Array;
  /** By row: 1 for devices outside the range of peaks that the histogram selects. */
  dimmed: Uint8Array;
  /** Row of the selected device; -1 for none. */
  selected: number;
  /** Open the recording of a device. */
  open: (row: number) => void;
}

/** Format the time that a session's name states; null if it states none. */
export function sessionTime({ began }: { began: number | null }): string | null {
  return began === null ? null : new Date(1000 * began).toISOString().slice(0, 19).replace("T", " ");
}

/** Files that are read of how many, and the elapsed time. `then`: what is done with them. */
export function ScanProgress({
  done,
  total,
  seconds,
  then,
}: Pick<FleetMeta, "done" | "total" | "seconds"> & { then?: string }) {
  const elapsed = `${formatCount(Math.round(seconds))} s`;
  const text =
    then !== undefined && total > 0 && done === total
      ? `${then}, ${elapsed}`
      : `Reading ${formatCount(done)} of ${formatCounted(total, "file")}, ${elapsed}`;
  return (
    <div class="fleet-reading" data-testid="fleet-reading">
      <progress aria-label="Files read" max={Math.max(total, 1)} value={done} />
      <p>{text}</p>
    </div>
  );
}

/** Time between two questions while the server reads, which has news once a second. */
const EVERY_MS = 1000;

/** Ask again and again while `isRunning`; a new key starts anew. */
export function usePolled<T>(
  key: string,
  ask: (signal: AbortSignal) => Promise<T>,
  isRunning: (answer: T) => boolean,
): Fetched<T> {
  const [state, setState] = useState<Fetched<T>>({ value: null, error: null });
  useEffect(() => {
    setState({ value: null, error: null });
    const abort = new AbortController();
    let timer = 0;
    const go = (): void => {
      ask(abort.signal).then(
        (value) => {
          if (abort.signal.aborted) return;
          setState({ value, error: null });
          if (isRunning(value)) timer = window.setTimeout(go, EVERY_MS);
        },
        (error: unknown) => {
          if (!abort.signal.aborted) setState({ value: null, error: asError(error) });
        },
      );
    };
    go();
    return () => {
      abort.abort();
      window.clearTimeout(timer);
    };
    // `ask` is a new closure at every render; `key` identifies the question.
  }, [key]);
  return state;
}

/** Return whether a run, or the capture that it belongs to, has several hosts or devices, as the server answers. */
export function useHasFleet(runs: Runs | null, run: string, listing: Listing | null): boolean {
  // Tabs without a list of recordings keep the last answer.
  const known = useRef(new Set<string>());
  const sessions = runs?.runs.find(({ name }) => name === run)?.sessions ?? 1;
  if (sessions > 1 || listing?.has_fleet === true) known.current.add(run);
  return known.current.has(run);
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

/** Return the run of a device's recording, and the host of its file. */
function placeOf(devices: FleetDevices, row: number): ReturnType<typeof placeOfId> {
  return { run: devices.run[row], host: fileHost(devices, row) };
}

async function openAt(api: Api, id: string, place: ReturnType<typeof placeOfId>): Promise<void> {
  const { recordings } = await api.recordings({ ...place }, null);
  const found = recordings.find((recording) => recording.id === id);
  if (found === undefined)
    throw new Error(`The file of ${place.host} has changed: it has no recording with the id ${id}`);
  openRecording(found);
}
