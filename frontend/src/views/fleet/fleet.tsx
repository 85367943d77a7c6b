import type { ComponentChildren } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { outside } from "../../layout/fleet/devices";
import type { FleetMemory } from "../../payload/generated/answers";
import { rowsOf, rowWithId } from "../../payload/responses/fleet";
import { useAttempt } from "../data/use_fetched";
import { type PageProps, usePageState } from "../data/use_recording";
import { PageFrame } from "../page/details";
import { store, useViewState } from "../state/view_state";
import { Choice } from "../widgets/choice";
import { ErrorMessage, Message } from "../widgets/message";
import { DeviceTable } from "./device_table";
import { HeatMapSection } from "./heat_map";
import { HistogramSection } from "./histogram";
import { Captures, Hosts } from "./hosts";
import { type DevicesProps, type FleetProps, openDevice, ScanProgress, usePolled } from "./section";
import { Trend } from "./trend";

/** The answer in words, with the lines of `tb-memplugin fleet`. */
function FleetHeadline({ fleet, memory }: FleetProps) {
  const { capture, heading, joined, series_rule, texts } = fleet.meta;
  const series = capture?.series ?? [];
  const found = capture?.memories.find((each) => each.memory === memory);
  return (
    <header class="fleet-headline">
      <p class="headline" data-testid="headline">
        {heading}
      </p>
      <dl data-testid="fleet-lines">
        {joined !== "" && <Line label="joined">{joined}</Line>}
        {series.length > 0 && <Line label="series">{series_rule}</Line>}
        {series.map(({ text }) => (
          <Line key={text} label="">
            {text}
          </Line>
        ))}
        {found !== undefined && <MemoryLines found={found} {...texts[memory]} />}
        {capture?.leaks.map(({ text }) => (
          <Line key={text} label="growth">
            {text}
          </Line>
        ))}
      </dl>
    </header>
  );
}

function MemoryLines({
  found,
  worst,
  median,
}: {
  found: FleetMemory;
  worst: readonly string[];
  median: string;
}) {
  return (
    <>
      <Line label="worst">
        {worst.map((part, i) => (
          <span key={part}>
            {i > 0 && " · "}
            {i === 0 ? <b>{part}</b> : part}
          </span>
        ))}
      </Line>
      {found.worst.causes.map(({ text }) => (
        <Line key={text} label="because">
          {text}
        </Line>
      ))}
      {median !== "" && <Line label="median">{median}</Line>}
      {found.apart.map(({ text }) => (
        <Line key={text} label="apart">
          {text}
        </Line>
      ))}
    </>
  );
}

function Line({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  );
}

interface Props extends PageProps {
  run: string;
}

/** The devices of the capture that contains a run: the worst one with its cause, outliers, and missing hosts. */
export function FleetPage({ api, run, onState }: Props) {
  // Asked until the server has read the capture that contains the run; each answer has what was read so far.
  const { value: fleet, error } = usePolled(
    run,
    (signal) => api.fleet({ capture: run }, signal),
    ({ meta }) => meta.running,
  );
  const wanted = useViewState((state) => state.fleet_memory);
  usePageState(onState, error, fleet !== null && !fleet.meta.running);
  // Written to the URL, so that a shared link means the same after a newer run has appeared.
  useEffect(() => {
    if (store.get().tab === "fleet") store.fill({ run });
  }, [run]);
  if (error !== null) return <ErrorMessage error={error} />;
  if (fleet === null) return <div class="placeholder" aria-busy="true" />;
  const memories = fleet.meta.capture?.memories ?? [];
  const found = memories.find((each) => each.memory === wanted) ?? memories.at(0);
  const memory = found?.memory ?? "";
  const shared: FleetProps = { api, fleet, memory };
  return (
    <PageFrame drawer={null}>
      {fleet.meta.problem !== "" && (
        <Message error title="Reading the capture failed">
          {fleet.meta.problem}
        </Message>
      )}
      <FleetHeadline {...shared} />
      {fleet.meta.running && <ScanProgress {...fleet.meta} />}
      {memories.length > 1 && (
        <Choice
          label="Memory"
          testid="fleet-memory"
          options={memories.map(({ memory: value }) => ({
            value,
            label: value,
            about: `Devices with memory of this kind: ${value}`,
          }))}
          value={memory}
          onPick={(value) => store.set({ fleet_memory: value, fleet_peaks: null, fleet_device: "" })}
        />
      )}
      {found !== undefined && <Devices {...shared} found={found} key={memory} />}
      {/* Not before what stands above them. */}
      {(found !== undefined || !fleet.meta.running) && (
        <>
          <Hosts {...shared} />
          <Trend api={api} captures={fleet.meta.captures.length} />
          <Captures {...shared} />
        </>
      )}
    </PageFrame>
  );
}

/** The devices of one memory. */
function Devices(props: FleetProps & { found: FleetMemory }) {
  const { api, fleet, memory } = props;
  const { devices } = fleet;
  const [error, attempt] = useAttempt();
  const range = useViewState((state) => state.fleet_peaks);
  const id = useViewState((state) => state.fleet_device);
  const rows = useMemo(() => rowsOf(devices, memory), [devices, memory]);
  const dimmed = useMemo(() => outside(devices.peak_bytes, range), [devices, range]);
  const selected = useMemo(() => rowWithId(devices, id), [devices, id]);
  const open = (row: number): void => attempt(openDevice(api, devices, row));
  const shared: DevicesProps = { ...props, rows, dimmed, selected, open };
  return (
    <>
      {error !== null && <ErrorMessage error={error} />}
      <HeatMapSection {...shared} />
      <HistogramSection {...shared} />
      <DeviceTable {...shared} />
    </>
  );
}
