import { useMemo, useRef } from "preact/hooks";
import { formatBytes, formatShare } from "../../base/units";
import { listedHost, type RecordingOptions } from "../../payload/choose_recording";
import type { Runs, Summary } from "../../payload/generated/answers";
import { useSidebar } from "../browser/host_window";
import { NEW_COMPARISON, NEW_RECORDING, store, type ViewState } from "../state/view_state";
import { Combobox, type PickerProps, runOptions, type RunPeaks, withPeak } from "../widgets/combobox";

export interface PickersProps {
  runs: Runs | null;
  run: string;
  /** Recordings of the run; null until they are read. */
  recordings: readonly Summary[] | null;
  options: RecordingOptions | null;
}

export function Pickers({ runs, run, recordings, options }: PickersProps) {
  const peaks = useRef<RunPeaks>(new Map());
  const { tab, host, module } = store.get();
  // The recordings of one host do not have the peak of the run.
  if (recordings !== null && listedHost(runs, run, host) === "")
    peaks.current = withPeak(peaks.current, recordings);
  const known = peaks.current;
  const offered = useMemo(() => runOptions(runs?.runs ?? [], known), [runs, known]);
  const sidebar = useSidebar(run);
  const runNames = runs?.runs.map(({ name }) => name);
  const chosen = options?.chosen ?? null;
  const pick = (patch: Partial<ViewState>): void => store.set({ ...patch, ...NEW_RECORDING });
  const hosts = options?.hosts ?? [];
  const hostOptions = hosts.map((name) => ({ value: name, label: name, detail: "" }));
  const moduleOptions = (options?.modules ?? []).map((recording) => ({
    value: recording.title,
    label: recording.title,
    detail: formatBytes(recording.peak_bytes),
  }));
  const offeredSpaces = options?.spaces ?? [];
  const spaces = offeredSpaces.map((recording) => ({
    value: recording.id,
    label: offeredSpaces.some(({ id, memory }) => id !== recording.id && memory === recording.memory)
      ? `${recording.memory} (${recording.title})`
      : recording.memory,
    detail: detailOf(recording),
  }));
  return (
    <div class="pickers">
      {!offersAll(sidebar.runs, runNames) && (
        <Combobox
          label="Run"
          testid="run-picker"
          options={offered}
          value={run}
          onPick={(name) => pick({ run: name, host: "", module: "", space: "", ...NEW_COMPARISON })}
        />
      )}
      {/* An XLA dump does not name its host. */}
      {options !== null && hosts.some((name) => name !== "") && !offersAll(sidebar.hosts, hosts) && (
        <Select
          label={tab === "snapshots" ? "File" : "Host"}
          testid="host-picker"
          options={hostOptions}
          value={chosen?.host ?? host}
          onPick={(name) => pick({ host: name, module: "", space: "" })}
        />
      )}
      {tab === "memory_viewer" && (
        <Combobox
          label="HLO module"
          testid="module-picker"
          options={moduleOptions}
          value={chosen?.title ?? module}
          onPick={(title) => pick({ module: title, space: "" })}
        />
      )}
      {options !== null && (
        <Select
          label={tab === "memory_viewer" ? "Memory space" : "Memory"}
          testid="space-picker"
          options={spaces}
          value={chosen?.id ?? ""}
          onPick={(id) => {
            const picked = offeredSpaces.find((recording) => recording.id === id);
            if (picked !== undefined) pick({ space: picked.memory, module: picked.title });
          }}
        />
      )}
    </div>
  );
}

/** Return true if XProf's sidebar offers all that a picker would, and shows what is chosen. */
function offersAll(offered: readonly string[] | null, names: readonly string[] = []): boolean {
  if (offered === null) return false;
  const known = new Set(offered);
  return names.every((name) => known.has(name));
}

/** Return the detail of a memory: its peak, and for an allocator the share of capacity. */
function detailOf({ axis, peak_bytes, capacity_bytes }: Summary): string {
  const peak = formatBytes(peak_bytes);
  return axis === "TIME" && capacity_bytes !== null
    ? `${peak}, ${formatShare(peak_bytes, capacity_bytes)} full`
    : peak;
}

function Select({ label, testid, options, value, onPick }: PickerProps) {
  if (options.length === 0) return null;
  return (
    <label class="picker">
      <span>{label}</span>
      <select
        data-testid={testid}
        value={value}
        disabled={options.length < 2}
        onChange={(event) => onPick(event.currentTarget.value)}
      >
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.detail === "" || options.length < 2
              ? option.label
              : `${option.label} \u00b7 ${option.detail}`}
          </option>
        ))}
      </select>
    </label>
  );
}
