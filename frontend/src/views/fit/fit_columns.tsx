import type { JSX } from "preact";
import { formatBytes, formatExact } from "../../base/units";
import type { FitKey } from "../../layout/fit/fit_table";
import { boundBy } from "../../layout/fit/fit_table";
import type { FitCandidate, FitStep } from "../../payload/generated/answers";
import {
  knobNames,
  leftOf,
  leftText,
  recomputedText,
  reservedText,
  stateOf,
  STATE_TEXT,
} from "../../payload/responses/fit";
import type { Column } from "../tables/data_table";

export interface FitColumn extends Column<FitKey> {
  cell(candidate: FitCandidate): JSX.Element | string;
}

/** Above 90%, fragmentation alone can cause an out-of-memory error. */
const TIGHT_SHARE = 0.9;
const DASH = <span class="muted">–</span>;

/** Columns that name a candidate: target, knobs other than the searched one, and changes. */
export function namingColumns(step: FitStep): FitColumn[] {
  const changed = step.choices.some(({ changes }) => changes.length > 0);
  return [
    column(
      "target",
      "Target",
      "The accelerators that it is compiled for",
      "minmax(80px, .7fr)",
      ({ target }) => target,
    ),
    ...knobNames(step).map((name) => ({
      ...knobColumn(name, ({ knobs }) => knobs[name]),
      numeric: step.choices.every(({ knobs }) => typeof knobs[name] === "number"),
    })),
    ...(changed
      ? [
          column(
            "changes",
            "Change",
            "Change made to the program, to try advice",
            "minmax(130px, 1.3fr)",
            (each) =>
              each.changes.length === 0 ? DASH : <span title={each.changes.join("\n")}>{each.change}</span>,
          ),
        ]
      : []),
  ];
}

/** Column of a knob's value. Numbers are aligned to the right. */
export function knobColumn(
  name: string,
  read: (candidate: FitCandidate) => FitCandidate["value"] | undefined,
  heading = name,
): FitColumn {
  const cell = (each: FitCandidate): JSX.Element | string => {
    const value = read(each);
    return value === null || value === undefined ? DASH : <span title={String(value)}>{String(value)}</span>;
  };
  return column(`knob:${name}`, heading, `Value of the knob ${name}`, "minmax(64px, .5fr)", cell);
}

export function reservedColumn(): FitColumn {
  return column(
    "reserved",
    "Reserved",
    "What the program requests from each device: compilers compare it with the limit",
    "82px",
    ({ reserved_bytes: bytes }) =>
      bytes === null ? DASH : <span title={formatExact(bytes)}>{reservedText(bytes)}</span>,
    true,
  );
}

export function leftColumn(): FitColumn {
  return column(
    "left",
    "Left",
    "Limit minus reserved memory; the bar shows reserved memory",
    "126px",
    room,
    true,
  );
}

export function recomputedColumn(): FitColumn {
  return column(
    "recomputed",
    "Recomputed",
    "Instructions that the compiler runs twice by itself, to save memory, and their share of FLOPs",
    "minmax(124px, .8fr)",
    (each) => (each.reserved_bytes === null ? DASH : recomputedText(each)),
    true,
  );
}

export function boundColumn(): FitColumn {
  return column(
    "bound",
    "Bound by",
    "What takes the most memory at the peak",
    "minmax(150px, 1.6fr)",
    (each) => {
      const text = boundBy(each);
      return text === null ? DASH : <span title={text}>{text}</span>;
    },
  );
}

export function outcomeColumns(step: FitStep): FitColumn[] {
  const failed = step.candidates.some(({ error }) => error !== null);
  return [
    column(
      "fits",
      "Fits",
      "Whether the program fits; a click on an error shows it in full",
      "92px",
      (each) => {
        const state = stateOf(each);
        return (
          <span class={state === "refused" || state === "failed" ? "fit-bad" : ""}>{STATE_TEXT[state]}</span>
        );
      },
    ),
    reservedColumn(),
    column(
      "peak",
      "Peak",
      "Maximum of the live bytes",
      "82px",
      ({ peak_bytes: bytes }) => sized(bytes),
      true,
    ),
    leftColumn(),
    recomputedColumn(),
    column("seconds", "Seconds", "Time to compile it", "70px", ({ seconds }) => seconds.toFixed(1), true),
    ...(failed
      ? [
          column("error", "Error", "Why there is no program", "minmax(160px, 2fr)", ({ error }) =>
            error === null ? DASH : <span title={error}>{error}</span>,
          ),
        ]
      : []),
  ];
}

function room(each: FitCandidate): JSX.Element {
  const left = leftOf(each);
  const { limit_bytes: limit, reserved_bytes: reserved } = each;
  if (left === null || limit === null || reserved === null) return DASH;
  const used = Math.min(reserved / Math.max(limit, 1), 1);
  const level = left < 0 ? "lacking" : used > TIGHT_SHARE ? "tight" : "";
  return (
    <span class={`room ${level}`} style={{ "--used": `${100 * used}%` }} title={formatExact(left)}>
      {leftText(left)}
    </span>
  );
}

function sized(bytes: number | null): JSX.Element {
  return bytes === null ? DASH : <span title={formatExact(bytes)}>{formatBytes(bytes)}</span>;
}

export function column(
  key: FitKey,
  heading: string,
  about: string,
  track: string,
  cell: FitColumn["cell"],
  numeric = false,
): FitColumn {
  return { key, heading, about, track, cell, numeric };
}
