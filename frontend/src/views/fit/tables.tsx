import { useMemo } from "preact/hooks";
import { formatCount, formatCounted, formatExact, formatLeft } from "../../base/units";
import { boundBy, candidateTexts, type LargestLine, largestLines } from "../../layout/fit/chart";
import { hasRates } from "../../layout/fit/front";
import type { Value } from "../../layout/table/fields";
import type { FitCandidate, FitStep } from "../../payload/generated/answers";
import {
  choiceKey,
  knobNames,
  largestText,
  leftOf,
  rateText,
  recomputedText,
  reservedText,
  STATE_TEXT,
  stateOf,
  stepTimeText,
  stepName,
} from "../../payload/responses/fit";
import { store, useViewState } from "../state/view_state";
import {
  Bytes,
  CellLink,
  type Column,
  column,
  DASH,
  partColumn,
  Room,
  savedColumn,
  tickColumn,
} from "../tables/columns";
import { Table } from "../tables/table";
import { candidateName, type SectionProps } from "./candidate";

/** Columns that name a candidate: target, knobs other than the searched one, and changes. */
function namingColumns(step: FitStep): Column<FitCandidate>[] {
  return [
    TARGET,
    ...knobNames(step).map((name) => ({
      ...knobColumn(name, ({ knobs }) => knobs[name]),
      numeric: step.choices.every(({ knobs }) => typeof knobs[name] === "number"),
    })),
    column("text", "changes", "Change", "Change made to the program, to try advice", ({ change }) => change, {
      track: "minmax(130px, 1.3fr)",
      constant: step.choices.some(({ changes }) => changes.length > 0) ? null : "",
      order: ({ change }) => (change === "" ? null : change),
      cell: ({ change, changes }) =>
        changes.length === 0 ? DASH : <span title={changes.join("\n")}>{change}</span>,
    }),
  ];
}

const TARGET = column<FitCandidate>(
  "text",
  "target",
  "Target",
  "The accelerators that it is compiled for",
  ({ target }) => target,
  { track: "minmax(80px, .7fr)" },
);

/** Column of a knob's value. */
function knobColumn(
  name: string,
  read: (candidate: FitCandidate) => FitCandidate["value"] | undefined,
  more: Partial<Column<FitCandidate>> = {},
): Column<FitCandidate> {
  const value = (each: FitCandidate): Value => {
    const found = read(each) ?? null;
    return typeof found === "boolean" ? String(found) : found;
  };
  const track = "minmax(64px, .5fr)";
  return column("text", `knob:${name}`, name, `Value of the knob ${name}`, value, {
    csv: name,
    track,
    ...more,
  });
}

const RESERVED = column<FitCandidate>(
  "bytes",
  "reserved",
  "Reserved",
  "What the program requests from each device: compilers compare it with the limit",
  (each) => each.reserved_bytes,
  {
    csv: "reserved_bytes",
    track: "82px",
    cell: ({ reserved_bytes: bytes }) =>
      bytes === null ? DASH : <Bytes of={bytes} text={reservedText(bytes)} />,
  },
);

const LEFT = column<FitCandidate>(
  "bytes",
  "left",
  "Left",
  "Limit minus reserved memory; the bar shows reserved memory",
  leftOf,
  {
    csv: "left_bytes",
    track: "126px",
    cell: (each) => {
      const left = leftOf(each);
      if (left === null) return DASH;
      const used = (each.reserved_bytes ?? 0) / Math.max(each.limit_bytes ?? 0, 1);
      return <Room used={used} title={formatExact(left)} text={formatLeft(left)} />;
    },
  },
);

const RECOMPUTED = column<FitCandidate>(
  "count",
  "recomputed",
  "Recomputed",
  "Instructions that the compiler runs twice by itself, to save memory, and their share of FLOPs",
  (each) => each.rematerialized,
  {
    csv: "rematerialized",
    track: "minmax(124px, .8fr)",
    order: (each) => (each.reserved_bytes === null ? null : each.rematerialized),
    cell: (each) => (each.reserved_bytes === null ? DASH : recomputedText(each)),
  },
);

const BOUND = column<FitCandidate>(
  "text",
  "bound",
  "Bound by",
  "What takes the most memory at the peak",
  boundBy,
  { csv: "bound_by", track: "minmax(150px, 1.6fr)" },
);

const STATES = ["fits", "recomputes", "refused", "failed"] as const;

/** Columns of the table of candidates. `onError` shows the error of a candidate. */
export function candidateColumns(
  step: FitStep,
  onError: (candidate: FitCandidate) => void,
): Column<FitCandidate>[] {
  const [target, ...naming] = namingColumns(step);
  const value = knobColumn(step.searched, (each) => each.value, { csv: "", numeric: true });
  const searched = step.searched === "" ? null : value;
  return [
    target,
    ...(searched === null ? [] : [savedColumn(step.searched, searched.value)]),
    ...naming,
    ...(searched === null ? [] : [searched]),
    column(
      "text",
      "fits",
      "Fits",
      "Whether the program fits; a click on an error shows it in full",
      ({ fits }) => String(fits),
      {
        track: "92px",
        order: (each) => STATES.indexOf(stateOf(each)),
        cell: (each) => {
          const state = stateOf(each);
          const isBad = state === "refused" || state === "failed";
          return <span class={isBad ? "fit-bad" : ""}>{STATE_TEXT[state]}</span>;
        },
      },
    ),
    RESERVED,
    column("bytes", "peak", "Peak", "Maximum of the live bytes", (each) => each.peak_bytes, {
      csv: "peak_bytes",
      track: "82px",
    }),
    savedColumn("limit_bytes", (each) => each.limit_bytes),
    LEFT,
    RECOMPUTED,
    savedColumn("rematerialized_flops", (each) => each.rematerialized_flops),
    column(
      "count",
      "step",
      "Step (est.)",
      "Estimated time of one run of the program, and the share of the chip's FLOPs per second that it reaches (MFU)",
      ({ step_seconds: seconds }) => (seconds > 0 ? seconds : null),
      {
        csv: "step_seconds",
        track: "minmax(112px, .7fr)",
        constant: step.candidates.some(({ step_seconds: seconds }) => seconds > 0) ? null : "",
        cell: (each) => (each.step_seconds > 0 ? stepTimeText(each) : DASH),
      },
    ),
    savedColumn("utilization", (each) => each.utilization),
    column(
      "count",
      "rate",
      `${step.item}/s (est.)`,
      "Estimated rate of all devices together; bold: no candidate of the target is as fast with less memory",
      ({ items_per_second: rate }) => (rate > 0 ? rate : null),
      {
        csv: "items_per_second",
        track: "minmax(96px, .6fr)",
        constant: hasRates(step) ? null : "",
        cell: ({ items_per_second: rate, on_front: isOnFront }) =>
          rate === 0 ? DASH : isOnFront ? <b>{rateText(rate)}</b> : rateText(rate),
      },
    ),
    column("count", "seconds", "Seconds", "Time to compile it", ({ seconds }) => seconds, {
      track: "70px",
      cell: ({ seconds }) => seconds.toFixed(1),
    }),
    column("text", "error", "Error", "Why there is no program", ({ error }) => error, {
      track: "minmax(160px, 2fr)",
      constant: step.candidates.some(({ error }) => error !== null) ? null : "",
      cell: (each) =>
        each.error === null ? (
          DASH
        ) : (
          <CellLink title={each.error} onClick={() => onError(each)}>
            {each.error}
          </CellLink>
        ),
    }),
    savedColumn("run", ({ run }) => run),
  ];
}

/** Table of all candidates by target, choice and value; a click or Enter opens one, and two ticks compare. */
export function CandidatesTable({ step, actions }: SectionProps) {
  const ticked = useViewState((state) => state.fit_ticked);
  const shown = useViewState((state) => state.fit_candidate);
  const { isCompiled, tick } = actions;
  const compared = tick !== null && step.candidates.filter(isCompiled).length > 1;
  const onTick = (candidate: FitCandidate): void => {
    if (compared && isCompiled(candidate)) tick(candidate);
  };
  const columns = useMemo(() => {
    const all = candidateColumns(step, ({ run }) => store.set({ fit_candidate: run }));
    if (!compared) return all;
    const ticks = tickColumn<FitCandidate>({
      about: "Tick two candidates to compare them",
      title: "Tick two candidates to compare them",
      testid: "fit-tick",
      label: (each) => `Compare ${candidateName(step, each)}`,
      isTicked: ({ run }) => run === ticked,
      onTick,
      canTick: isCompiled,
    });
    return [ticks, ...all];
  }, [step, actions, ticked]);
  const { length } = step.candidates;
  return (
    <section class="fit-table" data-testid="fit-candidates" aria-label="Candidates">
      <h2>Candidates</h2>
      <Table
        {...{ columns, open: actions.open }}
        rows={step.candidates}
        bytes={(each) => each.reserved_bytes}
        texts={(each) => candidateTexts(each, step.searched)}
        label="Candidates"
        testid="fit-candidate-row"
        noun="candidate"
        fileName={`${stepName(step).replaceAll(/[^\w.-]+/g, "_")}_candidates.csv`}
        summary={(found) =>
          `${formatCount(found)} of ${formatCounted(length, "candidate")}` +
          (ticked === "" ? "" : ". Tick another one to compare")
        }
        isSelected={({ run }) => run === shown}
        keys={{ " ": onTick }}
      />
    </section>
  );
}

/** Table of the largest value that fits for each target and choice; a click or Enter opens its candidate. */
export function LargestTable({ step, actions }: SectionProps) {
  const { searched } = step;
  const { rows, columns } = useMemo(
    () => ({ rows: largestLines(step), columns: largestColumns(step) }),
    [step],
  );
  return (
    <section class="fit-table" data-testid="fit-largest" aria-label={`Largest ${searched}`}>
      <Table
        {...{ columns, rows }}
        heading={
          <>
            <h2>Largest {searched} that fits</h2>
            <span class="muted">found by compiling, so larger values that were not tried may fit too</span>
          </>
        }
        where="tree_sort"
        texts={({ named }) => [choiceKey(named)]}
        label={`Largest ${searched}`}
        testid="fit-largest-row"
        noun="choice"
        fileName={`${stepName(step).replaceAll(/[^\w.-]+/g, "_")}_largest.csv`}
        open={({ largest, named }) => actions.open(largest ?? named)}
      />
    </section>
  );
}

export function largestColumns(step: FitStep): Column<LargestLine>[] {
  const { searched } = step;
  const largest = (line: LargestLine) => line.largest;
  const value = knobColumn(searched, (each) => each.value, { numeric: true, track: "minmax(150px, .6fr)" });
  const recomputed = {
    ...RECOMPUTED,
    csv: "recomputed",
    value: recomputedText,
    order: RECOMPUTED.value,
  };
  return [
    ...namingColumns(step).map((each) => partColumn(each, ({ named }: LargestLine) => named)),
    {
      ...partColumn(value, largest),
      heading: `Largest ${searched}`,
      csv: `largest_${searched}`,
      cell: (line) =>
        line.largest === null ? (
          <span class="fit-bad">{largestText(undefined, line.named)}</span>
        ) : (
          <>
            <b>{String(line.largest.value)}</b>
            {line.isEnd && (
              <span class="muted" title={`No larger ${searched} was compiled: one may fit`}>
                {" end of the range"}
              </span>
            )}
          </>
        ),
    },
    partColumn(RESERVED, largest),
    partColumn(LEFT, largest),
    column(
      "text",
      "without",
      "Without recomputation",
      `The largest ${searched} that was tried below all those for which the compiler runs instructions twice`,
      ({ without }) => without && value.value(without),
      { csv: "without_recomputation", numeric: true, track: "minmax(150px, .8fr)" },
    ),
    partColumn(recomputed, largest),
    partColumn(BOUND, largest),
    savedColumn("run", (line) => line.largest?.run ?? null),
  ];
}
