import type { Api } from "../../payload/api";
import type { FleetMemory } from "../../payload/generated/answers";
import type { Fleet } from "../../payload/responses/fleet";
import type { ViewProps } from "../state/view_state";

/** What the parts of the Fleet tab share. */
export interface FleetProps extends ViewProps {
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
