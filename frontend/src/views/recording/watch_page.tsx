import { useMemo, useRef, useState } from "preact/hooks";
import { cssColor, roleColors } from "../../base/colors";
import { formatShare } from "../../base/units";
import { formatTime, labelCenter, timeAxis } from "../../layout/axis";
import { ledgerChart, nearestMoment } from "../../layout/bands";
import { hostOf, keepTimes, snapshotsOf } from "../../layout/live";
import type { Api } from "../../payload/api";
import type { Ledger, Problem, Summary } from "../../payload/generated/answers";
import { FREE } from "../../payload/generated/constants";
import { useWidth } from "../browser/hooks";
import { TermsContext, termsOf } from "../data/terms";
import { useLastFetched } from "../data/use_fetched";
import { allRows, type Curve, type PageProps, useCurve, usePageState } from "../data/use_recording";
import { ByteAxis } from "../drawing/byte_axis";
import { Figures } from "../page/figures";
import { Caveats, Verdict } from "../page/headline";
import { useDark } from "../state/theme";
import { store } from "../state/view_state";
import { type Column, column } from "../tables/columns";
import { ListTable } from "../tables/table";
import { UsageSection } from "../usage/usage_chart";
import { ErrorMessage } from "../widgets/message";
import { Panel } from "./panel";
import { RecordingFrame } from "./recording_page";
import { StepGrowth } from "./step_growth";

const HEIGHT = 180;
const LEFT = 76;
const RIGHT = 16;
const TOP = 8;
const BOTTOM = 22;
const TICK_WIDTH = 90;
/** Colors of holders by their place, as numbers of roles: neighbors are told apart without hues, too. */
const COLORS = [1, 5, 8, 6, 2, 7, 9, 4, 10, 3, 11, 0];

interface LedgerProps {
  api: Api;
  /** A memory of a watched job. */
  recording: Summary;
}

/** The bytes of a memory by holder over time, which add up to its size, and the peaks of the phases of its steps. */
function LedgerSection({ api, recording }: LedgerProps) {
  const { id, end_ns, memory } = recording;
  const { value, error } = useLastFetched(`${id} ${end_ns}`, (_, signal) => api.ledger({ id }, signal));
  if (error !== null) return <ErrorMessage error={error} />;
  if (value === null || (value.holders.length === 0 && value.phases.length === 0)) return null;
  return (
    <section aria-label={`Ledger of ${memory}`} data-testid="ledger" data-memory={memory}>
      <header class="section-head">
        <h2>{`${value.holders.length > 0 ? "Ledger" : "Phases"} of ${memory}`}</h2>
      </header>
      {value.holders.length > 0 && <Holders ledger={value} />}
      {value.phases.length > 0 && (
        <ListTable
          columns={PHASES}
          rows={value.phases}
          where="tree_sort"
          label="Phases"
          testid="phases"
          noun="phase"
          fileName="phases.csv"
        />
      )}
    </section>
  );
}

function Holders({ ledger }: { ledger: Ledger }) {
  const place = useRef<HTMLDivElement>(null);
  const width = useWidth(place);
  const [pointed, setPointed] = useState<number | null>(null);
  const plot = Math.max(width - LEFT - RIGHT, 1);
  const chart = useMemo(() => ledgerChart(ledger, Math.floor(plot / TICK_WIDTH)), [ledger, plot]);
  const { bands, max, span } = chart;
  const times = ledger.time_ns;
  const x = (time: number): number => LEFT + ((time - span[0]) / (span[1] - span[0])) * plot;
  const y = (bytes: number): number => TOP + (HEIGHT - TOP - BOTTOM) * (1 - bytes / max);
  const line = (tops: readonly number[]): string[] => tops.map((bytes, i) => `${x(times[i])},${y(bytes)}`);
  const dark = useDark();
  const colors = roleColors(dark);
  const color = (band: number): string => cssColor(colors[COLORS[band % COLORS.length]]);
  const shown = Math.min(pointed ?? times.length - 1, times.length - 1);
  const rows = useMemo(
    () =>
      bands
        .map(({ holder, bytes, most }, i): Holder => {
          const share = bytes[shown] / Math.max(bands[bands.length - 1].top[shown], 1);
          return { holder, color: holder === FREE ? null : color(i), bytes: bytes[shown], share, most };
        })
        .reverse(),
    [bands, shown, dark],
  );
  const low = (band: number): readonly number[] => bands.at(band - 1)?.top ?? [];
  return (
    <>
      <div ref={place} class="growth-chart">
        <svg
          width={width}
          height={HEIGHT}
          role="img"
          aria-label="Bytes of each holder over time"
          onPointerMove={(event) => {
            const at = event.clientX - event.currentTarget.getBoundingClientRect().left;
            setPointed(nearestMoment(times, span[0] + ((at - LEFT) / plot) * (span[1] - span[0])));
          }}
          onPointerLeave={() => setPointed(null)}
        >
          <ByteAxis ticks={chart.bytes} left={LEFT} right={width - RIGHT} y={y} />
          {bands.map(({ holder, top }, i) =>
            holder === FREE ? null : (
              <path
                key={holder}
                d={`M${line(top).join(" L")} L${line(i === 0 ? top.map(() => 0) : low(i))
                  .reverse()
                  .join(" L")} Z`}
                fill={color(i)}
              >
                <title>{holder}</title>
              </path>
            ),
          )}
          {chart.times.map(({ value, label }) => (
            <text
              key={value}
              x={labelCenter(x(value), TICK_WIDTH, width)}
              y={HEIGHT - 6}
              text-anchor="middle"
            >
              {label}
            </text>
          ))}
          {pointed !== null && (
            <line class="pointed" x1={x(times[shown])} x2={x(times[shown])} y1={TOP} y2={HEIGHT - BOTTOM} />
          )}
        </svg>
      </div>
      <ListTable
        rows={rows}
        columns={HOLDERS}
        where="tree_sort"
        label="Holders"
        testid="ledger-holders"
        noun="holder"
        fileName="holders.csv"
        options={
          <span class="muted">{pointed === null ? "Last moment" : `At ${formatTime(times[shown])}`}</span>
        }
      />
    </>
  );
}

interface Holder {
  holder: string;
  color: string | null;
  bytes: number;
  share: number;
  most: number;
}

const HOLDERS: readonly Column<Holder>[] = [
  column("text", "holder", "Holder", "Who holds the memory", ({ holder }) => holder, {
    track: "minmax(220px, 1fr)",
    cell: ({ holder, color }) => (
      <>
        <i class="swatch" style={color === null ? {} : { background: color }} /> {holder}
      </>
    ),
  }),
  column("bytes", "holder_bytes", "Size", "Bytes at the moment", ({ bytes }) => bytes, { csv: "bytes" }),
  column("count", "holder_share", "Share", "Share of the memory", ({ share }) => share, {
    csv: "share",
    cell: ({ share }) => formatShare(share, 1),
  }),
  column("bytes", "holder_most", "Most", "Most bytes at any moment", ({ most }) => most, {
    csv: "most_bytes",
  }),
];

type Phase = Ledger["phases"][number];

const PHASES: readonly Column<Phase>[] = [
  column("text", "phase", "Phase", "Its name in the script", ({ phase }) => phase, {
    track: "minmax(220px, 1fr)",
  }),
  column("bytes", "phase_bytes", "Peak", "Most bytes in use", ({ bytes }) => bytes, { csv: "bytes" }),
  column("count", "phase_time", "At", "Time since the recording started", ({ time_ns }) => time_ns, {
    csv: "time_ns",
    cell: ({ time_ns }) => formatTime(time_ns),
  }),
];

interface Props extends PageProps {
  summary: Summary;
  /** All recordings of the run. */
  recordings: readonly Summary[];
  problems: Problem[];
}

/** Page of a job's memory over time, which grows while the job runs, with the snapshots of the job as marks. */
export function WatchPage({ summary, onState, ...shared }: Props) {
  const { api } = shared;
  const { curve, error } = useCurve(api, summary.id, `${summary.length} ${summary.end_ns}`, (last, next) => {
    const { position, zoom } = store.get();
    store.fill(keepTimes({ position, zoom }, last.times, next.times));
  });
  usePageState(onState, error, curve !== null, curve?.view);
  if (error !== null) return <ErrorMessage error={error} />;
  if (curve === null) return <div class="placeholder" aria-busy="true" />;
  return (
    <TermsContext.Provider value={termsOf(summary)}>
      <Sections {...shared} curve={curve} />
    </TermsContext.Provider>
  );
}

type SectionsProps = Omit<Props, "summary" | "onState"> & { curve: Curve };

function Sections({ api, curve, recordings, problems }: SectionsProps) {
  const { view, data, times } = curve;
  const available = useMemo(() => allRows(data), [data]);
  const axis = useMemo(() => timeAxis(times), [times]);
  const snapshots = useMemo(
    () => snapshotsOf(recordings, view.recording.memory),
    [recordings, view.recording.memory],
  );
  const shared = { api, view, available, program: data.program, axis };
  return (
    <RecordingFrame
      full={false}
      panel={<Panel {...shared} />}
      top={
        <>
          <Verdict verdict={view.verdict} advice={null} busy={false} />
          <Figures {...{ view, available }} />
          <Caveats caveats={view.caveats} problems={problems} />
        </>
      }
      charts={
        <UsageSection {...shared} snapshots={snapshots} spans={data.spans}>
          {null}
        </UsageSection>
      }
      below={
        <>
          {[view.recording, ...hostOf(recordings, view.recording)].map((recording) => (
            <LedgerSection key={recording.id} {...{ api, recording }} />
          ))}
          <StepGrowth api={api} recording={view.recording} />
        </>
      }
    />
  );
}
