import { formatShare } from "../../base/units";
import type { FitCandidate, FitStep } from "../../payload/generated/answers";
import { ROLES } from "../../payload/generated/constants";
import { type CandidateState, knobText, STATE_TEXT, stateOf } from "../../payload/responses/fit";
import { byteTicks, positionTicks, type Tick } from "../axis";

/** Persistent roles are at the bottom, so that the roles that grow with the knob are on top. */
const ROLE_ORDER = [1, 2, 11, 7, 3, 6, 0, 9, 10, 4, 5, 8];
/** Space above the highest limit, for the candidates that do not fit. */
const ABOVE_LIMIT = 1.25;
const MARGIN = 1.06;
/** Limits above this multiple of the largest candidate are off the chart. */
const MAX_EMPTY = 4;
const MAX_VALUE_TICKS = 12;

/** A candidate in the chart. Coordinates are shares of the plot, from the left and from the bottom. */
export interface FitPoint {
  /** Index into the step's candidates. */
  candidate: number;
  x: number;
  y: number;
  state: CandidateState;
  /** Whether it reserves more than the chart shows. */
  above: boolean;
}

interface FitBand {
  role: number;
  x: number[];
  bottom: number[];
  top: number[];
}

interface FitLimit {
  targets: string[];
  bytes: number;
  /** Null: above the chart. */
  y: number | null;
}

export interface FitChart {
  /** By choice: its candidates, in the order of the searched knob. */
  lines: FitPoint[][];
  /** Peak of the selected choice by role. */
  bands: FitBand[];
  limits: FitLimit[];
  bytes: Tick[];
  values: Tick[];
  max: number;
  span: readonly [number, number];
}

/** Return whether a step has a chart along the searched knob, that is, some choice has two values. */
export function hasCurve({ candidates, searched, choices }: FitStep): boolean {
  return (
    searched !== "" &&
    choices.some(
      (_, choice) =>
        new Set(candidates.filter((each) => each.choice === choice).map(({ value }) => numberOf(value)))
          .size > 1,
    )
  );
}

/** Lay out the memory of candidates along the searched knob, with the peak of one choice by role. */
export function fitChart(step: FitStep, selected: number): FitChart {
  const { candidates, choices } = step;
  const shown = candidates.flatMap((each, i) => (numberOf(each.value) === null ? [] : [i]));
  const values = shown.map((i) => numberOf(candidates[i].value) ?? 0);
  const span = paddedSpan(values);
  const max = highest(candidates);
  const x = (value: FitCandidate["value"]): number =>
    ((numberOf(value) ?? 0) - span[0]) / (span[1] - span[0]);
  const point = (i: number): FitPoint => {
    const bytes = candidates[i].reserved_bytes ?? 0;
    const state = stateOf(candidates[i]);
    return { candidate: i, x: x(candidates[i].value), y: bytes / max, state, above: bytes > max };
  };
  return {
    lines: choices.map((_, choice) => shown.filter((i) => candidates[i].choice === choice).map(point)),
    bands: bandsOf(
      shown.map((i) => candidates[i]).filter((each) => each.choice === selected && each.peak_bytes !== null),
      (each) => x(each.value),
      max,
    ),
    limits: limitsOf(candidates).map((limit) => ({
      ...limit,
      y: limit.bytes > max ? null : limit.bytes / max,
    })),
    bytes: byteTicks([0, max], 6),
    values: valueTicks(values, span),
    max,
    span,
  };
}

export function numberOf(value: FitCandidate["value"]): number | null {
  return typeof value === "number" ? value : null;
}

/** Stack the roles that any candidate has. */
function bandsOf(
  candidates: readonly FitCandidate[],
  x: (candidate: FitCandidate) => number,
  max: number,
): FitBand[] {
  const bands: FitBand[] = [];
  let bottom = candidates.map(() => 0);
  for (const role of ROLE_ORDER) {
    const sizes = candidates.map(({ roles }) => roles.find((each) => each.role === role)?.bytes ?? 0);
    if (sizes.every((bytes) => bytes === 0)) continue;
    const top = bottom.map((below, i) => below + sizes[i] / max);
    bands.push({ role, x: candidates.map(x), bottom, top });
    bottom = top;
  }
  return bands;
}

/** Order roles as the chart stacks them, from the bottom. */
export function stackedRoles(roles: FitCandidate["roles"]): FitCandidate["roles"] {
  return roles.slice().sort((a, b) => ROLE_ORDER.indexOf(a.role) - ROLE_ORDER.indexOf(b.role));
}

/** Return the bytes at the top of the chart. One candidate far above the limit must not flatten the others. */
export function highest(candidates: readonly FitCandidate[], maxEmpty = MAX_EMPTY): number {
  const largest = Math.max(0, ...candidates.map((each) => each.reserved_bytes ?? 0));
  const limit = Math.max(0, ...limitsOf(candidates).map(({ bytes }) => bytes));
  if (largest === 0) return MARGIN * Math.max(limit, 1);
  if (limit === 0 || limit > maxEmpty * largest) return MARGIN * largest;
  return MARGIN * Math.max(limit, Math.min(largest, ABOVE_LIMIT * limit));
}

/** Return the distinct limits, lowest first, with the targets that have them. */
export function limitsOf(candidates: readonly FitCandidate[]): { targets: string[]; bytes: number }[] {
  const found = new Map<number, Set<string>>();
  for (const { target, limit_bytes: bytes } of candidates)
    if (bytes !== null) found.set(bytes, (found.get(bytes) ?? new Set()).add(target));
  return [...found].sort(([a], [b]) => a - b).map(([bytes, targets]) => ({ bytes, targets: [...targets] }));
}

function paddedSpan(values: readonly number[]): [number, number] {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const pad = Math.max(
    (high - low) * 0.02,
    Number.EPSILON * Math.max(Math.abs(high), 1),
    high === low ? 1 : 0,
  );
  return [low - pad, high + pad];
}

/** Label the values if there are few, else evenly spaced ones. */
function valueTicks(values: readonly number[], span: readonly [number, number]): Tick[] {
  const distinct = [...new Set(values)].sort((a, b) => a - b);
  const room = (span[1] - span[0]) / MAX_VALUE_TICKS;
  if (distinct.every((value, i) => i === 0 || value - distinct[i - 1] >= room))
    return distinct.map((value) => ({ value, label: value.toLocaleString("en-US") }));
  return positionTicks(span, MAX_VALUE_TICKS).filter(({ value }) => value >= distinct[0]);
}

/** A line of the table of largest values: a choice, and the candidates with its largest values. */
export interface LargestLine {
  /** The largest that fits; null if none does. */
  largest: FitCandidate | null;
  /** The largest is the last that was compiled: a larger one may fit. */
  isEnd: boolean;
  /** The largest before the compiler runs instructions twice. */
  without: FitCandidate | null;
  /** The candidate to name: the largest, else the first. */
  named: FitCandidate;
}

export function largestLines({ choices, candidates }: FitStep): LargestLine[] {
  return choices.flatMap(({ candidate, at_end: isEnd, without_recomputation: without }, choice) => {
    const named =
      candidate === null ? candidates.find((each) => each.choice === choice) : candidates[candidate];
    if (named === undefined) return [];
    return {
      largest: candidate === null ? null : candidates[candidate],
      isEnd,
      without: without === null ? null : candidates[without],
      named,
    };
  });
}

/** Return the searched texts of a candidate. */
export function candidateTexts(each: FitCandidate, searched: string): string[] {
  return [
    each.target,
    ...Object.entries({ ...each.knobs, [searched]: each.value }).map(knobText),
    ...each.changes,
    each.change,
    STATE_TEXT[stateOf(each)],
    each.error ?? "",
  ];
}

/** Parts that the table names; the side panel lists all. */
const MAX_PARTS = 3;
const MIN_SHARE = 0.01;

/** Return the parts with the most bytes at the peak, else roles: "activations of layer_* 71%, logits 20%". */
export function boundBy({ parts, roles, peak_bytes: peak }: FitCandidate): string | null {
  if (peak === null || peak === 0) return null;
  const named = parts.length > 0 ? parts : roles.map(({ role, bytes }) => ({ name: ROLES[role], bytes }));
  const texts = named
    .slice(0, MAX_PARTS)
    .filter(({ bytes }) => bytes / peak >= MIN_SHARE)
    .map(({ name, bytes }) => `${name} ${formatShare(bytes, peak)}`);
  return texts.length === 0 ? null : texts.join(", ");
}
