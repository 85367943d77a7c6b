import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { useStore } from "../../base/store";
import { formatCount, formatCounted } from "../../base/units";
import type { DeviceKey } from "../../layout/fleet/device_rows";
import {
  devicesCsv,
  deviceTexts,
  filterDevices,
  listedRows,
  sortDevices,
} from "../../layout/fleet/device_rows";
import { deviceName, rowWithId } from "../../payload/responses/fleet";
import { useSearch } from "../data/use_search";
import { Cell, DataTable, stepLine, TableRow, useTable } from "../tables/data_table";
import { Toggle } from "../widgets/toggle";
import { deviceColumns } from "./device_columns";
import { compareDevice } from "./open_device";
import type { DevicesProps } from "./section";

/** Farthest from the median first. */
const FARTHEST_FIRST = { key: "", descending: false } as const;
const TICK = {
  key: "tick",
  heading: "",
  about: "Tick two devices to compare them",
  track: "20px",
  numeric: false,
} as const;

/** Table of the outliers, or of all devices; a click or Enter opens one, and ticks compare. */
export function DeviceTable(props: DevicesProps): JSX.Element {
  const { fleet, found, rows, dimmed, selected, store, open } = props;
  const { devices } = fleet;
  const all = useStore(store, (state) => state.fleet_all);
  const range = useStore(store, (state) => state.fleet_peaks);
  const columns = useMemo(() => deviceColumns(devices, rows, open), [devices, rows]);
  const table = useTable<DeviceKey | "">(store, columns, FARTHEST_FIRST);
  const { size, sort, template } = table;
  const search = useSearch(table.search, devices, (of) => [
    ...new Set(of.host.flatMap((_, row) => deviceTexts(of, row))),
  ]);
  // A range of peaks is a choice of devices: all of them are listed.
  const every = all || range !== null;
  const listed = useMemo(() => listedRows(devices, rows, dimmed, every), [devices, rows, dimmed, every]);
  const filtered = useMemo(
    () => filterDevices(devices, listed, search, size),
    [devices, listed, search, size],
  );
  const lines = useMemo(
    () => sortDevices(devices, filtered.rows, sort.key === "" ? null : { ...sort, key: sort.key }),
    [devices, filtered, sort],
  );
  const at = lines.indexOf(selected);
  const tick = (row: number): void => {
    const { fleet_ticked: ticked } = store.get();
    const id = devices.id[row];
    if (ticked === "" || rowWithId(devices, ticked) < 0) store.set({ fleet_ticked: id });
    else if (ticked === id) store.set({ fleet_ticked: "" });
    else compareDevice(store, devices, row, ticked);
  };
  const ticked = useStore(store, (state) => state.fleet_ticked);
  const grid = `${TICK.track} ${template}`;
  const what = every ? formatCounted(rows.length, "device") : formatCounted(found.outliers.length, "outlier");
  return (
    <section class="fleet-table" data-testid="fleet-devices" aria-label="Devices">
      <header class="section-head">
        <h2>{every ? "Devices" : "Outliers"}</h2>
        <Ticked {...props} />
      </header>
      <DataTable
        store={store}
        table={{ ...table, template: grid, columns: [TICK, ...table.columns] }}
        options={
          <Toggle
            label="all devices"
            title="List all devices, not only the outliers"
            on={all}
            onChange={(wanted) => store.set({ fleet_all: wanted })}
          />
        }
        errors={filtered.errors}
        summary={`${formatCount(lines.length)} of ${what}`}
        csv={() => devicesCsv(devices, lines)}
        fileName={`${fleet.meta.capture?.name.replaceAll("/", "_") ?? "fleet"}_devices.csv`}
        count={lines.length}
        at={at}
        empty={
          listed.length > 0
            ? "No device matches the filter."
            : every
              ? "No device has such a peak."
              : "No outliers."
        }
        label="Devices"
        onStep={(by) => {
          const to = lines.at(stepLine(at, by, lines.length));
          if (to !== undefined) store.set({ fleet_device: devices.id[to] });
        }}
        keys={{ Enter: (i) => open(lines[i]), " ": (i) => tick(lines[i]) }}
        line={(i, id) => (
          <TableRow
            {...{ id }}
            template={grid}
            testid="fleet-device-row"
            selected={i === at}
            onPick={() => open(lines[i])}
          >
            <Cell>
              <input
                type="checkbox"
                tabindex={-1}
                data-testid="fleet-tick"
                aria-label={`Compare ${deviceName(devices, lines[i])}`}
                title="Tick one device to compare it with the median device, or two to compare them"
                checked={ticked !== "" && ticked === devices.id[lines[i]]}
                onClick={(event) => event.stopPropagation()}
                onChange={() => tick(lines[i])}
              />
            </Cell>
            {columns.map((column) => (
              <Cell key={column.key} numeric={column.numeric}>
                {column.cell(lines[i])}
              </Cell>
            ))}
          </TableRow>
        )}
      />
    </section>
  );
}

/** What can be done with a ticked device. */
function Ticked({ fleet, memory, store }: DevicesProps): JSX.Element | null {
  const { devices, meta } = fleet;
  const ticked = useStore(store, (state) => state.fleet_ticked);
  const row = rowWithId(devices, ticked);
  if (row < 0) return null;
  const typical = meta.typical[memory] ?? "";
  return (
    <div class="fleet-ticked" role="status" data-testid="fleet-ticked">
      <span class="muted">Ticked</span>
      <b>{deviceName(devices, row)}</b>
      {typical !== "" && typical !== ticked && (
        <button data-testid="compare-median" onClick={() => compareDevice(store, devices, row, typical)}>
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
