import { formatCount, formatCounted } from "../../base/units";
import type { Api } from "../../payload/api";
import type { FleetMemory, FleetMeta } from "../../payload/generated/answers";
import type { Fleet } from "../../payload/responses/fleet";

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
