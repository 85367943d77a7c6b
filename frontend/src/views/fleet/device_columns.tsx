import type { JSX } from "preact";
import { formatBytes, formatExact, formatShare } from "../../base/units";
import type { DeviceKey } from "../../layout/fleet/device_rows";
import type { FleetDevices } from "../../payload/responses/fleet";
import { growthText, peakText } from "../../payload/responses/fleet";
import type { Column } from "../tables/data_table";
import { Middle } from "../widgets/middle";

export interface DeviceColumn extends Column<DeviceKey> {
  cell(row: number): JSX.Element | string;
}

/** Above 90%, fragmentation alone can cause an out-of-memory error. */
const TIGHT_SHARE = 0.9;

/** Columns of the devices with these rows; without a capacity or a leak, those are left out. */
export function deviceColumns(
  devices: FleetDevices,
  rows: Uint32Array,
  onOpen: (row: number) => void,
): DeviceColumn[] {
  const has: Partial<Record<DeviceKey, boolean>> = {
    share: rows.some((row) => devices.capacity[row] > 0),
    growth: rows.some((row) => devices.growth[row] !== ""),
  };
  return allColumns(devices, onOpen).filter(({ key }) => has[key] !== false);
}

function allColumns(devices: FleetDevices, onOpen: (row: number) => void): DeviceColumn[] {
  return [
    column("host", "Host", "Host of the device", "minmax(150px, 1fr)", (row) => (
      <button
        class="link"
        data-testid="open-device"
        title={`${devices.host[row]}: click to open the device`}
        onClick={(event) => {
          event.stopPropagation();
          onOpen(row);
        }}
      >
        <Middle text={devices.host[row]} />
      </button>
    )),
    column("device", "Device", "Device and its memory", "minmax(100px, .6fr)", (row) =>
      withTitle(devices.device[row]),
    ),
    column(
      "peak",
      "Peak",
      "Maximum of the live bytes",
      "84px",
      (row) => <span title={peakText(devices, row)}>{formatBytes(devices.peak[row])}</span>,
      true,
    ),
    column(
      "share",
      "Of capacity",
      "Share of the capacity at the peak",
      "96px",
      (row) => share(devices, row),
      true,
    ),
    column(
      "distance",
      "From median",
      "Peak minus the peak of the median device",
      "104px",
      (row) => (
        <span title={formatExact(devices.fromMedian[row])}>
          {`${devices.fromMedian[row] > 0 ? "+" : ""}${formatBytes(devices.fromMedian[row])}`}
        </span>
      ),
      true,
    ),
    column("cause", "Because", "What differs the most from the median device", "minmax(200px, 2fr)", (row) =>
      withTitle(devices.cause[row]),
    ),
    column("growth", "Growth", "The site that leaks fastest", "minmax(150px, 1.2fr)", (row) =>
      withTitle(growthText(devices, row)),
    ),
  ];
}

function share({ peak, capacity }: FleetDevices, row: number): JSX.Element {
  if (!(capacity[row] > 0)) return <span class="muted">–</span>;
  const used = peak[row] / capacity[row];
  const level = used > 1 ? "lacking" : used > TIGHT_SHARE ? "tight" : "";
  return (
    <span
      class={`room ${level}`}
      style={{ "--used": `${100 * Math.min(used, 1)}%` }}
      title={`of ${formatExact(capacity[row])}`}
    >
      {formatShare(peak[row], capacity[row])}
    </span>
  );
}

function withTitle(text: string): JSX.Element {
  return text === "" ? <span class="muted">–</span> : <span title={text}>{text}</span>;
}

function column(
  key: DeviceKey,
  heading: string,
  about: string,
  track: string,
  cell: DeviceColumn["cell"],
  numeric = false,
): DeviceColumn {
  return { key, heading, about, track, cell, numeric };
}
