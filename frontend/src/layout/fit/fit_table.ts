import { formatCsv } from "../../base/csv";
import { ROLES } from "../../payload/generated/constants";
import type { FitCandidate, FitStep } from "../../payload/generated/answers";
import { knobNames, leftOf, recomputedText, stateOf, STATE_TEXT } from "../../payload/responses/fit";
import type { Search } from "../../base/search";
import { parseFilters } from "../table/table_filter";

/** A column of either table; `knob:NAME` is that of a knob. */
export type FitKey =
  | `knob:${string}`
  | "tick"
  | "target"
  | "changes"
  | "fits"
  | "reserved"
  | "peak"
  | "left"
  | "recomputed"
  | "without"
  | "bound"
  | "seconds"
  | "error";

/** Null keeps the given order: by target, choice and value. */
export type FitSort = { key: FitKey; descending: boolean } | null;

/** A line of the table of largest values: a choice, and the candidates with its largest values. */
export interface LargestLine {
  choice: number;
  /** The largest that fits; null if none does. */
  largest: FitCandidate | null;
  /** The largest before the compiler runs instructions twice. */
  without: FitCandidate | null;
  /** The candidate to name: the largest, else the first. */
  named: FitCandidate;
}

export function largestLines({ choices, candidates }: FitStep): LargestLine[] {
  return choices.flatMap(({ candidate, without_recomputation: without }, choice) => {
    const named =
      candidate === null ? candidates.find((each) => each.choice === choice) : candidates[candidate];
    if (named === undefined) return [];
    return {
      choice,
      largest: candidate === null ? null : candidates[candidate],
      without: without === null ? null : candidates[without],
      named,
    };
  });
}

const collator = new Intl.Collator("en", { numeric: true });

/** Return the candidates with the search in any of their texts and reserved bytes that match the size filter. */
export function filterCandidates(
  candidates: readonly FitCandidate[],
  searched: string,
  search: Search,
  size: string,
): { rows: FitCandidate[]; errors: string[] } {
  const { text, matchesSize, errors } = parseFilters(search, size);
  return {
    rows: candidates.filter(
      (each) =>
        (each.reserved_bytes === null ? size.trim() === "" : matchesSize(each.reserved_bytes)) &&
        (text.empty || candidateTexts(each, searched).some((value) => text.matches(value))),
    ),
    errors,
  };
}

/** Return the texts of a candidate that a search looks at. */
export function candidateTexts(each: FitCandidate, searched: string): string[] {
  return [
    each.target,
    ...Object.entries({ ...each.knobs, [searched]: each.value }).map(
      ([name, value]) => `${name}=${String(value)}`,
    ),
    ...each.changes,
    each.change,
    STATE_TEXT[stateOf(each)],
    each.error ?? "",
  ];
}

/** Sort rows. Unknown values come last in both directions; equal rows keep their order. */
export function sortBy<Row>(
  rows: readonly Row[],
  sort: FitSort,
  read: (row: Row, key: FitKey) => number | string | null,
): Row[] {
  if (sort === null) return rows.slice();
  const { key, descending } = sort;
  const sign = descending ? -1 : 1;
  return rows.slice().sort((a, b) => {
    const [x, y] = [read(a, key), read(b, key)];
    if (x === null || y === null) return Number(x === null) - Number(y === null);
    return sign * (typeof x === "number" && typeof y === "number" ? x - y : collator.compare(`${x}`, `${y}`));
  });
}

const ORDER = ["fits", "recomputes", "refused", "failed"] as const;

export function candidateValue(each: FitCandidate, key: FitKey, searched: string): number | string | null {
  if (key.startsWith("knob:")) {
    const value = key === `knob:${searched}` ? each.value : (each.knobs[key.slice("knob:".length)] ?? null);
    return typeof value === "boolean" ? String(value) : value;
  }
  switch (key) {
    case "target":
      return each.target;
    case "changes":
      return each.change === "" ? null : each.change;
    case "fits":
      return ORDER.indexOf(stateOf(each));
    case "reserved":
      return each.reserved_bytes;
    case "peak":
      return each.peak_bytes;
    case "left":
      return leftOf(each);
    case "recomputed":
      return each.reserved_bytes === null ? null : each.rematerialized;
    case "seconds":
      return each.seconds;
    case "error":
      return each.error;
    case "bound":
      return boundBy(each);
    default:
      return null;
  }
}

export function largestValue(line: LargestLine, key: FitKey, searched: string): number | string | null {
  if (key === "without")
    return line.without === null ? null : candidateValue(line.without, `knob:${searched}`, searched);
  const named =
    key === "target" || key === "changes" || (key.startsWith("knob:") && key !== `knob:${searched}`);
  const each = named ? line.named : line.largest;
  return each === null ? null : candidateValue(each, key, searched);
}

/** Parts that the table names; the side panel lists all. */
const MAX_PARTS = 3;
const MIN_SHARE = 0.01;

/** Return the parts with the most bytes at the peak, or else its roles: "activations of layer_* 71%, logits 20%". */
export function boundBy({ parts, roles, peak_bytes: peak }: FitCandidate): string | null {
  if (peak === null || peak === 0) return null;
  const named = parts.length > 0 ? parts : roles.map(({ role, bytes }) => ({ name: ROLES[role], bytes }));
  const texts = named
    .slice(0, MAX_PARTS)
    .filter(({ bytes }) => bytes / peak >= MIN_SHARE)
    .map(({ name, bytes }) => `${name} ${Math.round((100 * bytes) / peak)}%`);
  return texts.length === 0 ? null : texts.join(", ");
}

const text = (value: number | string | boolean | null | undefined): string | number =>
  typeof value === "number" ? value : value === null || value === undefined ? "" : String(value);

/** Format the candidates as CSV. Sizes are in bytes and empty if unknown. */
export function candidatesCsv(step: FitStep, rows: readonly FitCandidate[]): string {
  const knobs = knobNames(step);
  const searched = step.searched === "" ? [] : [step.searched];
  const headings = ["target", ...searched, ...knobs, "changes", "fits", "reserved_bytes", "peak_bytes"];
  return formatCsv(
    [
      ...headings,
      "limit_bytes",
      "left_bytes",
      "rematerialized",
      "rematerialized_flops",
      "seconds",
      "error",
      "run",
    ],
    rows.map((each) => [
      each.target,
      ...searched.map(() => text(each.value)),
      ...knobs.map((name) => text(each.knobs[name])),
      each.change,
      String(each.fits),
      text(each.reserved_bytes),
      text(each.peak_bytes),
      text(each.limit_bytes),
      text(leftOf(each)),
      each.rematerialized,
      each.rematerialized_flops,
      each.seconds,
      each.error ?? "",
      each.run,
    ]),
  );
}

/** Format the largest values as CSV. */
export function largestCsv(step: FitStep, lines: readonly LargestLine[]): string {
  const knobs = knobNames(step);
  const headings = [
    "target",
    ...knobs,
    "changes",
    `largest_${step.searched}`,
    "reserved_bytes",
    "left_bytes",
  ];
  return formatCsv(
    [...headings, "without_recomputation", "recomputed", "bound_by", "run"],
    lines.map(({ largest, without, named }) => [
      named.target,
      ...knobs.map((name) => text(named.knobs[name])),
      named.change,
      text(largest?.value),
      text(largest?.reserved_bytes),
      text(largest === null ? null : leftOf(largest)),
      text(without?.value),
      largest === null ? "" : recomputedText(largest),
      largest === null ? "" : (boundBy(largest) ?? ""),
      largest?.run ?? "",
    ]),
  );
}
