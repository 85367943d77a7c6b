import { boundBy } from "../../layout/fit_table";
import { formatExact, formatLeft } from "../../base/units";
import type { Value } from "../../layout/table/fields";
import type { FitCandidate, FitStep } from "../../payload/generated/answers";
import {
  knobNames,
  leftOf,
  recomputedText,
  reservedText,
  STATE_TEXT,
  stateOf,
  stepTimeText,
} from "../../payload/responses/fit";
import { Bytes, CellLink, type Column, column, DASH, Room, savedColumn } from "../tables/columns";

/** Columns that name a candidate: target, knobs other than the searched one, and changes. */
export function namingColumns(step: FitStep): Column<FitCandidate>[] {
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
export function knobColumn(
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

export const RESERVED = column<FitCandidate>(
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

export const LEFT = column<FitCandidate>(
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

export const RECOMPUTED = column<FitCandidate>(
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

export const BOUND = column<FitCandidate>(
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
