import { useMemo } from "preact/hooks";
import { formatBytes, formatCount, formatCounted, formatExact, formatShare } from "../../base/units";
import { listedRows } from "../../layout/fleet/devices";
import {
  deviceName,
  type FleetDevices,
  growthText,
  peakText,
  rowWithId,
} from "../../payload/responses/fleet";
import { store, useViewState } from "../state/view_state";
import { CellLink, type Column, column, DASH, Room, savedColumn, tickColumn } from "../tables/columns";
import { Table } from "../tables/table";
import { Toggle } from "../widgets/choice";
import { Middle } from "../widgets/labels";
import { compareDevice, type DevicesProps } from "./section";

/** Columns of the devices with these rows; without a capacity or a leak, those are left out. */
export function deviceColumns(
  devices: FleetDevices,
  rows: Uint32Array,
  onOpen: (row: number) => void,
): Column<number>[] {
  const { host, capacity_bytes: capacity, peak_bytes: peak, cause, growth } = devices;
  const text = (texts: readonly string[]) => (row: number) => (texts[row] === "" ? null : texts[row]);
  const used = (row: number): number | null => (capacity[row] > 0 ? peak[row] / capacity[row] : null);
  return [
    column("text", "host", "Host", "Host of the device", text(host), {
      track: "minmax(150px, 1fr)",
      cell: (row) => (
        <CellLink
          testid="open-device"
          title={`${host[row]}: click to open the device`}
          onClick={() => onOpen(row)}
        >
          <Middle text={host[row]} />
        </CellLink>
      ),
    }),
    savedColumn("run", text(devices.run)),
    column("text", "device", "Device", "Device and its memory", text(devices.device), {
      track: "minmax(100px, .6fr)",
    }),
    savedColumn("memory", text(devices.memory)),
    column("bytes", "peak", "Peak", "Maximum of the live bytes", (row) => peak[row], {
      csv: "peak_bytes",
      cell: (row) => <span title={peakText(devices, row)}>{formatBytes(peak[row])}</span>,
    }),
    savedColumn("capacity_bytes", (row) => (capacity[row] > 0 ? capacity[row] : null)),
    column("count", "share", "Of capacity", "Share of the capacity at the peak", used, {
      csv: "",
      track: "96px",
      constant: rows.some((row) => capacity[row] > 0) ? null : "",
      cell: (row) => (
        <Room
          used={used(row)}
          title={`of ${formatExact(capacity[row])}`}
          text={formatShare(peak[row], capacity[row])}
        />
      ),
    }),
    column(
      "change",
      "distance",
      "From median",
      "Peak minus the peak of the median device",
      (row) => devices.from_median_bytes[row],
      { csv: "from_median_bytes", track: "104px" },
    ),
    savedColumn("measured", (row) => devices.measured[row]),
    savedColumn("outlier", (row) => devices.outlier[row]),
    column("text", "cause", "Because", "What differs the most from the median device", text(cause), {
      track: "minmax(200px, 2fr)",
    }),
    column("text", "growth", "Growth", "The site that leaks fastest", text(growth), {
      track: "minmax(150px, 1.2fr)",
      constant: rows.some((row) => growth[row] !== "") ? null : "",
      order: (row) => (growth[row] === "" ? null : devices.growth_bytes[row]),
      cell: (row) => <span title={growthText(devices, row)}>{growthText(devices, row) || DASH}</span>,
    }),
    savedColumn("growth_bytes", (row) => (growth[row] === "" ? null : devices.growth_bytes[row])),
    savedColumn("growth_unit", text(devices.growth_unit)),
  ];
}

/** Table of the outliers, or of all devices; a click or Enter opens one, and ticks compare. */
export function DeviceTable(props: DevicesProps) {
  const { fleet, found, rows, dimmed, selected, open } = props;
  const { devices } = fleet;
  const all = useViewState((state) => state.fleet_all);
  const range = useViewState((state) => state.fleet_peaks);
  const ticked = useViewState((state) => state.fleet_ticked);
  const tick = (row: number): void => {
    const { fleet_ticked: first } = store.get();
    const id = devices.id[row];
    if (first === "" || rowWithId(devices, first) < 0) store.set({ fleet_ticked: id });
    else if (first === id) store.set({ fleet_ticked: "" });
    else compareDevice(devices, row, first);
  };
  const columns = useMemo(() => {
    const ticks = tickColumn<number>({
      about: "Tick two devices to compare them",
      title: "Tick one device to compare it with the median device, or two to compare them",
      testid: "fleet-tick",
      label: (row) => `Compare ${deviceName(devices, row)}`,
      isTicked: (row) => ticked !== "" && ticked === devices.id[row],
      onTick: tick,
    });
    return [ticks, ...deviceColumns(devices, rows, open)];
  }, [devices, rows, ticked]);
  // A range of peaks is a choice of devices: all of them are listed.
  const every = all || range !== null;
  const listed = useMemo(() => listedRows(devices, rows, dimmed, every), [devices, rows, dimmed, every]);
  const what = every ? formatCounted(rows.length, "device") : formatCounted(found.outliers.length, "outlier");
  return (
    <section class="fleet-table" data-testid="fleet-devices" aria-label="Devices">
      <header class="section-head">
        <h2>{every ? "Devices" : "Outliers"}</h2>
        <Ticked {...props} />
      </header>
      <Table
        {...{ columns, open }}
        rows={listed}
        bytes={(row) => devices.peak_bytes[row]}
        options={
          <Toggle
            label="all devices"
            title="List all devices, not only the outliers"
            on={all}
            onChange={(wanted) => store.set({ fleet_all: wanted })}
          />
        }
        label="Devices"
        testid="fleet-device-row"
        noun="device"
        fileName={`${fleet.meta.capture?.name.replaceAll("/", "_") ?? "fleet"}_devices.csv`}
        summary={(shown) => `${formatCount(shown)} of ${what}`}
        empty={
          listed.length > 0
            ? "No device matches the filter."
            : every
              ? "No device has such a peak."
              : "No outliers."
        }
        isSelected={(row) => row === selected}
        onSelect={(row) => store.set({ fleet_device: devices.id[row] })}
        keys={{ " ": tick }}
      />
    </section>
  );
}

/** What can be done with a ticked device. */
function Ticked({ fleet, memory }: DevicesProps) {
  const { devices, meta } = fleet;
  const ticked = useViewState((state) => state.fleet_ticked);
  const row = rowWithId(devices, ticked);
  if (row < 0) return null;
  const typical = meta.typical[memory] ?? "";
  return (
    <div class="fleet-ticked" role="status" data-testid="fleet-ticked">
      <span class="muted">Ticked</span>
      <b>{deviceName(devices, row)}</b>
      {typical !== "" && typical !== ticked && (
        <button data-testid="compare-median" onClick={() => compareDevice(devices, row, typical)}>
          Compare with the median device
        </button>
      )}
      <span class="muted">or tick another device to compare it with that one</span>
      <button
        class="quiet"
        aria-label="Clear the tick"
        title="Clear the tick"
        onClick={() => store.set({ fleet_ticked: "" })}
      >
        ×
      </button>
    </div>
  );
}
