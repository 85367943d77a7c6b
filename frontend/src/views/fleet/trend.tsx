import { useMemo, useRef, useState } from "preact/hooks";
import { formatCounted, formatSigned } from "../../base/units";
import { risesOf, seriesKey } from "../../layout/fleet/trend";
import type { Api } from "../../payload/api";
import type { TrendPoint, TrendSeries } from "../../payload/generated/answers";
import { TREND_BY, type TrendBy } from "../../payload/generated/constants";
import { FullWindow } from "../browser/full_window";
import { capitalize } from "../data/terms";
import { useAttempt } from "../data/use_fetched";
import { copySvg } from "../drawing/picture";
import { SaveDrawing } from "../drawing/save_picture";
import { store, useViewState } from "../state/view_state";
import { Bytes, CellLink, type Column, column } from "../tables/columns";
import { ListTable } from "../tables/table";
import { ButtonGroup } from "../widgets/choice";
import { ErrorMessage, Message } from "../widgets/message";
import { openById, ScanProgress, usePolled } from "./section";
import { pointName, TrendDrawing, upperName } from "./trend_chart";

interface Props {
  api: Api;
  /** Number of captures in the logdir. */
  captures: number;
}

/** Peaks of all captures over time. They are read when the section is opened. */
export function Trend({ api, captures }: Props) {
  const by = useViewState((state) => state.fleet_trend);
  return (
    <section class="fleet-trend" aria-label="Trend" data-testid="fleet-trend">
      <header class="section-head">
        <h2>Trend</h2>
        <ButtonGroup label="Points of the trend" look="choice" testid="trend-by">
          {TREND_BY.map((each) => (
            <button
              key={each}
              aria-pressed={each === by}
              title={`Read all captures and show a point for each ${each}`}
              onClick={() => store.set({ fleet_trend: each === by ? "" : each })}
            >
              By {each}
            </button>
          ))}
        </ButtonGroup>
      </header>
      {by === "" ? (
        <p class="muted">
          Peaks per memory and program over {formatCounted(captures, "capture")}, and what raised them.
        </p>
      ) : (
        <OpenTrend key={by} {...{ api, by, captures }} />
      )}
    </section>
  );
}

function OpenTrend({ api, captures, by }: Props & { by: TrendBy }) {
  const wanted = useViewState((state) => state.fleet_series);
  const { value, error } = usePolled(
    by,
    (signal) => api.fleetTrend({ by }, signal),
    ({ running }) => running,
  );
  if (error !== null) return <ErrorMessage error={error} />;
  if (value === null) return <div class="placeholder" aria-busy="true" />;
  if (value.running) return <ScanProgress {...value} then="Comparing neighbors" />;
  if (value.problem !== "")
    return (
      <Message error title="Reading the captures failed">
        {value.problem}
      </Message>
    );
  const series = value.series.find((each) => seriesKey(each) === wanted) ?? value.series.at(0);
  if (series === undefined)
    return <Message title="No trend">No capture has a memory or a program with a peak.</Message>;
  return (
    <>
      {value.series.length > 1 && <SeriesPicker series={series} all={value.series} />}
      {by === "day" && captures > 1 && series.points.length === 1 && (
        <p class="muted">All captures are of one day. “By capture” shows each of them.</p>
      )}
      <SeriesTrend key={seriesKey(series)} {...{ api, by, series }} />
    </>
  );
}

function SeriesPicker(props: { all: readonly TrendSeries[]; series: TrendSeries }) {
  return (
    <label class="fleet-series">
      <span class="muted">Of</span>
      <select
        data-testid="trend-series"
        value={seriesKey(props.series)}
        onChange={(event) => store.set({ fleet_series: event.currentTarget.value })}
      >
        {props.all.map((each) => (
          <option key={seriesKey(each)} value={seriesKey(each)}>
            {each.is_program ? `program ${each.name}` : `${each.name}, median device`}
            {risesOf(each) > 0 && ` · ${formatCounted(risesOf(each), "rise")}`}
          </option>
        ))}
      </select>
    </label>
  );
}

function SeriesTrend({ api, by, series }: { api: Api; by: TrendBy; series: TrendSeries }) {
  const place = useRef<HTMLDivElement>(null);
  const [pointed, setPointed] = useState<number | null>(null);
  const [error, attempt] = useAttempt();
  const columns = useMemo(() => trendColumns(series, by), [series, by]);
  const open = (at: number): void => {
    const { because, recording } = series.points[at];
    const before = because === null ? null : series.points[at - 1].recording;
    attempt(openById(api, recording, before));
  };
  return (
    <div ref={place}>
      {error !== null && <ErrorMessage error={error} />}
      <div class="fleet-trend-key">
        <span class="peak">{series.is_program ? "Peak" : "Peak of the median device"}</span>
        <span class="upper">{series.is_program ? "Reserved" : "Peak of the worst device"}</span>
        <span class="rise">Rise of more than 1%</span>
        <span class="spacer" />
        <SaveDrawing of="trend" fileName={`trend-${series.name}`} place={place} draw={copySvg} />
      </div>
      <FullWindow of="trend">
        <TrendDrawing {...{ series, by, pointed }} onPoint={setPointed} onOpen={open} />
      </FullWindow>
      <ListTable
        columns={columns}
        rows={series.points}
        bytes={({ peak_bytes: bytes }) => bytes}
        label={`Trend of ${series.name}`}
        testid="trend-points"
        noun={by}
        fileName={`trend_${series.name.replaceAll(/[^\w.-]+/g, "_")}.csv`}
        isSelected={(point) => pointed !== null && series.points[pointed] === point}
        open={(point) => open(series.points.indexOf(point))}
        onHover={(point) => setPointed(point === null ? null : series.points.indexOf(point))}
      />
    </div>
  );
}

function trendColumns(series: TrendSeries, by: TrendBy): Column<TrendPoint>[] {
  const upper = upperName(series);
  const of = series.is_program ? "hosts" : "devices";
  return [
    column(
      "text",
      "trend_when",
      by === "day" ? "Day" : "Capture",
      "The time that the session's name states",
      (point) => pointName(point, by),
      { csv: by, track: by === "day" ? "100px" : "minmax(200px, .6fr)" },
    ),
    column("bytes", "trend_peak", "Peak", "Of the median device, or of the program", (p) => p.peak_bytes, {
      csv: "peak_bytes",
      track: "100px",
    }),
    column(
      "bytes",
      "trend_upper",
      capitalize(upper),
      series.is_program ? "What the program requests from a device" : "The largest peak",
      (p) => (p.largest_bytes < 0 ? null : p.largest_bytes),
      { csv: series.is_program ? "reserved_bytes" : "worst_device_bytes", track: "100px" },
    ),
    column("change", "trend_change", "Change", `Since the ${by} before`, (p) => p.rise_bytes, {
      csv: "change_bytes",
      cell: ({ rise_bytes: rise }) => <Bytes of={rise} text={rise === 0 ? "" : formatSigned(rise)} />,
    }),
    column(
      "text",
      "trend_because",
      "Because",
      "Lines whose bytes at the peak grew the most, by comparison with the point before",
      ({ because }) => because,
      { csv: "because", track: "minmax(280px, 2fr)" },
    ),
    column("count", "trend_count", capitalize(of), `Number of ${of}`, ({ count }) => count, { csv: of }),
    column("text", "trend_open", "Open", "The recording", ({ recording }) => recording, {
      csv: "recording",
      track: "90px",
      cell: ({ because }) => <CellLink>{because === null ? "Open" : "Compare"}</CellLink>,
    }),
  ];
}
