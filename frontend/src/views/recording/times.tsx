import { useMemo } from "preact/hooks";
import { formatSeconds } from "../../base/units";
import type { Value } from "../../layout/table/fields";
import type { Sorting } from "../../layout/url_values";
import type { Api } from "../../payload/api";
import type { Times } from "../../payload/generated/answers";
import { ROLES } from "../../payload/generated/constants";
import type { FirstView, Program } from "../../payload/recording/recording";
import { rowName, type Rows } from "../../payload/recording/rows";
import type { TimeTables } from "../../payload/recording/times";
import { type Fetched, useFetched } from "../data/use_fetched";
import { store, useViewState } from "../state/view_state";
import { Bytes, type Column, column, DASH, Path } from "../tables/columns";
import { ListTable } from "../tables/table";
import { RowRole } from "../widgets/labels";
import { ErrorMessage } from "../widgets/message";

/** Digits of measured times; estimated ones have two. */
const MEASURED_DIGITS = 3;

/** Times of a program's instructions. */
export interface KnownTimes {
  times: Times;
  tables: TimeTables;
}

/**
 * Load the times of a program while something shows them: of a profile, they are most of the file. The value is "none"
 * where they are not known.
 */
export function useTimes(
  api: Api,
  { recording: { id, kind } }: FirstView,
  complete: boolean,
): Fetched<KnownTimes | "none"> {
  const isShown = useViewState((state) => state.axis === "time" || state.below === "time");
  const key = kind === "program" && complete && isShown ? id : null;
  return useFetched(key, async (of, signal) => {
    const times = await api.times({ id: of }, signal);
    const tables = await api.timeTables({ id: of }, signal);
    return tables === null ? "none" : { times, tables };
  });
}

/** The tab Time, while times are read, and where none are known. */
export function TimesTab(props: {
  times: Fetched<KnownTimes | "none">;
  view: FirstView;
  program: Program;
  rows: Rows;
}) {
  const { times, ...shown } = props;
  if (times.error !== null) return <ErrorMessage error={times.error} />;
  if (times.value === null) return <p class="muted">Reading the times…</p>;
  if (times.value === "none")
    return (
      <p class="muted">
        The time of its instructions is not known: the profile has none, and the speed of the device is not
        known.
      </p>
    );
  return <TimesPanel {...shown} {...times.value} />;
}

interface Props extends KnownTimes {
  view: FirstView;
  program: Program;
  rows: Rows;
}

/** What one run of a program takes: sentences, its instructions, and the buffers that are held unused. */
function TimesPanel({ view, times, tables, program, rows }: Props) {
  const measured = times.measured_seconds !== null;
  return (
    <section aria-label="Time" data-testid="times">
      <header class="section-head">
        <h2>{measured ? "Measured time" : "Estimated time"}</h2>
      </header>
      {times.sentences.map((sentence) => (
        <p key={sentence}>{sentence}</p>
      ))}
      <Instructions {...{ tables, program }} fileName={`${view.recording.title}-times`} />
      <Unused {...{ tables, rows, measured }} fileName={`${view.recording.title}-held-unused`} />
    </section>
  );
}

/** Format with two digits what a column of similar figures shows; tiny ones are not worth their digits. */
function ratioText(ratio: number): string {
  return ratio < 0.01 ? "<0.01" : ratio.toPrecision(2);
}

function byteSeconds(product: number): string {
  const gib = product / 2 ** 30;
  return gib < 0.001
    ? "<0.001 GiB·s"
    : `${gib.toLocaleString("en-US", { maximumSignificantDigits: 2 })} GiB·s`;
}

function known(value: number): Value {
  return Number.isNaN(value) ? null : value;
}

function secondsColumn(
  key: string,
  heading: string,
  about: string,
  values: Float64Array,
  digits: number,
): Column<number> {
  return column("count", key, heading, about, (at) => known(values[at]), {
    csv: `${key}_seconds`,
    constant: values.every(Number.isNaN) ? "" : null,
    track: "92px",
    cell: (at) => (values[at] > 0 ? formatSeconds(values[at], digits) : DASH),
  });
}

const LONGEST_FIRST: Sorting = { key: "time", descending: true };

function Instructions(of: { tables: TimeTables; program: Program; fileName: string }) {
  const { positions } = of.tables;
  const inspected = useViewState((state) => state.position);
  const columns = useMemo(() => instructionColumns(of.tables, of.program), [of.tables, of.program]);
  const rows = useMemo(
    () => [...positions.seconds.keys()].filter((at) => positions.seconds[at] > 0),
    [positions],
  );
  const pick = (position: number): void => store.set({ position });
  return (
    <ListTable
      {...{ columns, rows }}
      first={LONGEST_FIRST}
      label="Instructions by time"
      testid="timed-instructions"
      noun="instruction"
      fileName={`${of.fileName}.csv`}
      isSelected={(at) => at === inspected}
      onSelect={pick}
      open={pick}
    />
  );
}

const ESTIMATED = "By bytes and FLOPs, and the rates that a chip reaches";

function instructionColumns({ positions }: TimeTables, program: Program): Column<number>[] {
  const { estimated, measured, imbalance, bound } = positions;
  const total = positions.seconds.reduce((sum, seconds) => sum + seconds, 0);
  const isMeasured = !measured.every(Number.isNaN);
  return [
    column("count", "position", "Position", "Position in the schedule", (at) => at, { track: "76px" }),
    column("name", "name", "Instruction", "Name of the instruction", (at) => program.name.at(at)),
    column("count", "time", "Share", "Share of the time of one run", (at) => positions.seconds[at], {
      csv: "",
      track: "64px",
      cell: (at) => `${((100 * positions.seconds[at]) / total).toFixed(1)}%`,
    }),
    secondsColumn("measured", "Measured", "Mean time in one run, on all devices", measured, MEASURED_DIGITS),
    secondsColumn("estimated", "Estimated", ESTIMATED, estimated, 2),
    column(
      "count",
      "ratio",
      "Ratio",
      "Measured time, divided by the estimated one",
      (at) => (estimated[at] > 0 && measured[at] > 0 ? measured[at] / estimated[at] : null),
      {
        csv: "measured_by_estimated",
        track: "64px",
        constant: isMeasured && !estimated.every(Number.isNaN) ? null : "",
        cell: (at) =>
          estimated[at] > 0 && measured[at] > 0 ? ratioText(measured[at] / estimated[at]) : DASH,
      },
    ),
    column(
      "count",
      "imbalance",
      "Devices",
      "Time on the slowest device, divided by that on the fastest",
      (at) => known(imbalance[at]),
      {
        track: "72px",
        constant: imbalance.every(Number.isNaN) ? "" : null,
        cell: (at) => (Number.isNaN(imbalance[at]) ? DASH : imbalance[at].toPrecision(3)),
      },
    ),
    column("text", "bound", "Bound by", "What it waits for most, by the estimate", (at) => bound.at(at), {
      track: "minmax(90px, .6fr)",
      constant: bound.blank ? "" : null,
    }),
    column("path", "op_name", "Op name", "Model path of the instruction", (at) => program.op_name.at(at), {
      cell: (at) => <Path text={program.op_name.at(at)} />,
    }),
  ];
}

const MOST_FIRST: Sorting = { key: "cost", descending: true };

function Unused(of: { tables: TimeTables; rows: Rows; measured: boolean; fileName: string }) {
  const { rows, measured } = of;
  const { unused, byte_seconds: held } = of.tables.rows;
  const selected = useViewState((state) => state.selected);
  const listed = useMemo(
    () => [...unused.keys()].filter((row) => unused[row] > 0 && rows.charge[row] > 0),
    [unused, rows],
  );
  const columns = useMemo((): Column<number>[] => {
    const digits = measured ? MEASURED_DIGITS : 2;
    const about = "Longest time for which it is held while nothing reads or writes it";
    return [
      column("bytes", "size", "Size", "Bytes of the buffer", (row) => rows.charge[row], {
        csv: "bytes",
        cell: (row) => <Bytes of={rows.charge[row]} />,
      }),
      secondsColumn("unused", "Unused for", about, unused, digits),
      column(
        "count",
        "cost",
        "Cost",
        "Bytes times the time for which nothing uses them",
        (row) => rows.charge[row] * unused[row],
        {
          csv: "unused_byte_seconds",
          track: "110px",
          cell: (row) => byteSeconds(rows.charge[row] * unused[row]),
        },
      ),
      column("count", "held", "Held", "Bytes times the time for which it is held", (row) => held[row], {
        csv: "byte_seconds",
        track: "110px",
        cell: (row) => byteSeconds(held[row]),
      }),
      column("text", "role", "Role", "What the buffer is for", (row) => ROLES[rows.role[row]], {
        track: "116px",
        cell: (row) => <RowRole {...{ rows, row }} />,
      }),
      column("name", "name", "Buffer", "Name of the buffer", (row) => rowName(rows, row)),
    ];
  }, [rows, unused, held, measured]);
  const pick = (row: number): void => store.set({ selected: row });
  return (
    <>
      <header class="section-head">
        <h2>Held while nothing uses it</h2>
      </header>
      <ListTable
        {...{ columns }}
        rows={listed}
        bytes={(row) => rows.charge[row]}
        first={MOST_FIRST}
        where="tree_sort"
        label="Buffers that are held unused"
        testid="held-unused"
        noun="buffer"
        fileName={`${of.fileName}.csv`}
        isSelected={(row) => row === selected}
        onSelect={pick}
        open={pick}
      />
    </>
  );
}
